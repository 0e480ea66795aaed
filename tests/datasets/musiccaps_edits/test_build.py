"""A hundred clips by a rule, edits by templates, recordings of the user's own."""

from __future__ import annotations

import hashlib
import json
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.datasets.making import run_script

from music_evals.annotations.target_words import targets_between, targets_in_words
from music_evals.benchmark.tasks.edits.sources import expand, sources_in_files
from music_evals.datasets.edit_sources import STAND_IN_PIECES, write_sources
from music_evals.datasets.manifest import rows_sha256
from music_evals.datasets.musiccaps_edits import build as caps
from music_evals.editing.instructions import KINDS, find_tags
from music_evals.errors import NoDataError, UnreadableFileError

BUILD = Path(__file__).resolve().parents[3] / "datasets_scripts" / "musiccaps_edits" / "build.py"


def test_no_edit_names_a_target():
    """A genre, a style and a mood are nothing that can be measured afterwards; the card says so."""
    rows = [row for config in caps.CONFIGS for row in caps.build_config(config)]
    assert not [row for row in rows if targets_in_words(row["instruction"])]
    assert not [row for row in rows if targets_between(row["source_prompt"], row["target_prompt"])]


def test_a_hundred_clips_with_one_edit_each() -> None:
    rows = caps.build_config("musiccaps")
    assert Counter(row["task"] for row in rows) == dict(caps.TASKS)
    assert len({row["excerpt"] for row in rows}) == 100
    for row in rows:
        assert row["end_s"] - row["start_s"] == 10
        assert {row["before"], row["after"]} <= set(KINDS[row["task"]].words)
        assert row["before"] in row["source_prompt"]
        assert row["target_prompt"] == row["source_prompt"].replace(row["before"], row["after"])
        assert row["after"] in row["instruction"]
        assert row["intended"] == ",".join(KINDS[row["task"]].intended_facets)


def test_the_stand_in_is_of_our_own_pieces() -> None:
    rows = caps.build_config("stand_in")
    assert Counter(row["excerpt"] for row in rows) == dict.fromkeys(STAND_IN_PIECES, 3)
    assert {row["origin"] for row in rows} == {"music_evals"}
    assert rows[1]["target_prompt"] == "An electronic piece."


def clips(n: int, word: str, part: str = "True") -> list[dict[str, str]]:
    return [
        {
            "ytid": f"{word}{i}",
            "aspect_list": f"['{word}', 'loud']",
            "is_audioset_eval": part,
            "start_s": "0",
            "end_s": "10",
        }
        for i in range(n)
    ]


def chosen(rows: list[dict[str, str]]) -> list[tuple[str, Any]]:
    return caps.choose(rows, {row["ytid"]: find_tags(row["aspect_list"]) for row in rows})


def test_clips_are_the_first_by_their_hash() -> None:
    rows = clips(50, "rock") + clips(50, "acoustic") + clips(50, "sad") + clips(30, "jazz", "False")
    found = chosen(rows)
    assert Counter(task for task, _ in found) == dict(caps.TASKS)
    assert all(row["is_audioset_eval"] == "True" for _, row in found)
    genres = {row["ytid"] for task, row in found if task == "genre"}
    digests = {f"rock{i}": hashlib.sha256(f"genre rock{i}".encode()).hexdigest() for i in range(50)}
    assert genres == set(sorted(digests, key=digests.__getitem__)[:34])
    assert {row["ytid"] for _, row in chosen(rows[::-1])} == {row["ytid"] for _, row in found}


def test_a_clip_is_taken_once_and_too_few_are_named() -> None:
    both = [{**row, "aspect_list": "['sad', 'rock']"} for row in clips(60, "rock")]
    found = chosen(both + clips(40, "acoustic") + clips(40, "sad"))
    assert len({row["ytid"] for _, row in found}) == 100
    with pytest.raises(NoDataError, match="0 clips have a word of style, and 33 are needed"):
        chosen(clips(50, "rock"))


def test_edit_reads_what_is_attached(tmp_path: Path) -> None:
    rows = caps.build_config("musiccaps")
    for row, suffix in zip(rows[:2], (".wav", ".flac"), strict=True):
        (tmp_path / f"{row['excerpt']}{suffix}").write_bytes(b"sound")
    attached = caps.attach(rows, tmp_path)
    assert (len(attached.rows), len(attached.missing)) == (2, 98)
    sources = sources_in_files([str(write_sources(attached, tmp_path / "list.jsonl"))])
    ready = expand(sources, None, generate=(), default="Anything.", seed=0)
    asked = ready[0].instruction
    assert asked is not None
    assert asked.word_pair == (rows[0]["before"], rows[0]["after"])
    assert asked.task == "genre"
    assert asked.intended_facets == ("harmony", "rhythm")
    (tmp_path / "none").mkdir()
    with pytest.raises(NoDataError, match=r"none of the 100 recordings.*cut each video"):
        caps.attach(rows, tmp_path / "none")


def test_captions_come_from_the_users_table(tmp_path: Path) -> None:
    table = tmp_path / "musiccaps-public.csv"
    table.write_text('ytid,start_s,caption\nabc,30,"A drum, loud."\n')
    assert caps.read_captions(table) == {"abc": "A drum, loud."}
    table.write_text("a,b\n1,2\n")
    with pytest.raises(UnreadableFileError, match="ytid and caption"):
        caps.read_captions(table)
    with pytest.raises(NoDataError, match=r"musiccaps-public\.csv"):
        caps.read_captions(tmp_path / "none.csv")


def test_the_table_is_made_by_the_rule(tmp_path: Path) -> None:
    """The script end to end, on clips that we made up."""
    rows = clips(50, "rock") + clips(50, "acoustic") + clips(50, "sad")
    table = tmp_path / "musiccaps-public.csv"
    table.write_text(
        "ytid,start_s,end_s,aspect_list,is_audioset_eval\n"
        + "".join(f'{row["ytid"]},0,10,"{row["aspect_list"]}",True\n' for row in rows)
    )
    lines = runpy.run_path(str(BUILD))["edits"](table).splitlines()
    assert len(lines) == 101
    assert lines[0] == "excerpt,start_s,end_s,task,instruction,source_prompt,target_prompt,before,after,intended"
    assert all(",A piece of rock music.," in line for line in lines[1:35])


def test_build_is_what_the_folder_holds(tmp_path: Path) -> None:
    run_script(BUILD, "--out", tmp_path)
    for path in BUILD.parent.glob("data/*/*.parquet"):
        assert (tmp_path / path.relative_to(BUILD.parent)).read_bytes() == path.read_bytes()
    manifest = json.loads((BUILD.parent / "manifest.json").read_text())
    for config in caps.CONFIGS:
        facts = manifest["files"][f"data/{config}/test-00000-of-00001.parquet"]
        assert rows_sha256(caps.build_config(config)) == facts["rows_sha256"]
