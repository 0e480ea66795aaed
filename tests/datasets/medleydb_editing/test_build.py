"""The manifest of MedleyDB excerpts: counts as published, sentences and recordings joined from the user's copies."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest
import soundfile
from tests.datasets.making import run_script

from music_evals.annotations import targets_of
from music_evals.benchmark.tasks.edits.sources import expand, sources_in_files
from music_evals.datasets.edit_sources import STAND_IN_PIECES, render_pieces, write_sources
from music_evals.datasets.manifest import rows_sha256
from music_evals.datasets.medleydb_editing import build as mdb
from music_evals.errors import NoDataError, UnreadableFileError

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / "datasets_scripts" / "medleydb_editing" / "build.py"


def test_counts_are_those_of_the_published_table():
    rows = mdb.build_config("zeta")
    by_excerpt = Counter(row["excerpt"] for row in rows)
    assert len(rows) == 696
    assert len(by_excerpt) == 35
    assert sum(sorted(by_excerpt.values())[-26:]) == 548  # the 26 richest files of the fact sheet
    assert [row["needs_source"] for row in rows].count(None) == 1  # the cell that holds "10"


def test_one_prompt_is_there_twice():
    pairs = Counter((row["excerpt"], row["instruction"]) for row in mdb.build_config("zeta"))
    assert [excerpt for (excerpt, _), count in pairs.items() if count > 1] == ["FreeJazz"]


def test_vanilla_takes_twenty_excerpts():
    rows = mdb.build_config("vanilla")
    assert len({row["excerpt"] for row in rows}) == len(rows) == 20
    assert mdb.build_config("vanilla") == rows


def test_sentences_are_the_published_ones():
    rows = {config: mdb.build_config(config) for config in ("zeta", "vanilla")}
    first = rows["zeta"][0]
    assert (first["excerpt"], first["source_prompt"]) == ("80sRock", "A recording of a rock song.")
    assert first["instruction"] == first["target_prompt"] == "A recording of a heavy metal song."
    assert all(row["target_prompt"] and row["origin"] == "MedleyMDPrompts" for rows in rows.values() for row in rows)
    assert len({(row["excerpt"], row["source_prompt"]) for row in rows["zeta"]}) <= 107
    assert all(row["source_prompt"] is None for row in rows["vanilla"])
    # the tables as they were when this was written: any other sentence changes the hash
    text = "\n".join(sorted(row["target_prompt"] for row in rows["zeta"]))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "6735b1ae03bb5ca7"


def test_targets_are_those_that_the_words_name():
    rows = mdb.build_config("zeta")
    named = [row for row in rows if row["targets"]]
    assert len(named) == 243
    assert {target.kind for row in named for target in targets_of(row["targets"])} == {
        "instrument_added", "instrument_removed",
    }  # fmt: skip
    both = next(row for row in named if row["target_prompt"].startswith("A violin playing while a guitar"))
    assert targets_of(both["targets"])[0].text == "violin"
    assert not any(row["targets"] for config in ("vanilla", "stand_in") for row in mdb.build_config(config))


def test_the_stand_in_has_a_sentence_and_a_label_in_each_row():
    rows = mdb.build_config("stand_in")
    assert all(row["instruction"] and row["origin"] == "music_evals" for row in rows)
    assert Counter(row["excerpt"] for row in rows) == dict.fromkeys(STAND_IN_PIECES, 3)


def test_the_table_is_made_of_the_published_ones():
    targets = (
        "filename,target_captions,can_be_used_without_source,source_caption_index\n"
        'MusicDelta_Toy_MIX.wav,"A bell, ringing.",1,2\nMusicDelta_Toy_MIX.wav,A horn.,10,1\n'
    )
    sources = "filename,source_captions\nMusicDelta_Toy_MIX.wav,A drum.\nMusicDelta_Toy_MIX.wav,A cymbal.\n"
    assert mdb.published_table(targets, sources).splitlines() == [
        "kind,excerpt,source_index,needs_source,sentence",
        "source,Toy,1,,A drum.",
        "source,Toy,2,,A cymbal.",
        'target,Toy,2,no,"A bell, ringing."',
        "target,Toy,1,,A horn.",
    ]
    with pytest.raises(UnreadableFileError, match="source_captions"):
        mdb.published_table(targets, targets)


class TestAttach:
    @pytest.mark.parametrize("place", ["{}", "Audio/{}", "flat"])
    def test_finds_the_layouts_of_medleydb(self, tmp_path, place):
        row = mdb.build_config("vanilla")[0]
        name = Path(row["audio_file"]).name if place == "flat" else place.format(row["audio_file"])
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"sound")
        attached = mdb.attach(mdb.build_config("vanilla"), tmp_path)
        assert [found["audio"] for found in attached.rows] == [str(path)]
        assert len(attached.missing) == 19
        assert attached.summary == "1 rows with a recording; 19 recordings missing, 0 with another checksum"

    def test_checks_a_checksum_where_there_is_one(self, tmp_path):
        (tmp_path / "a.wav").write_bytes(b"a")
        (tmp_path / "b.wav").write_bytes(b"b")
        rows = [
            {"audio_file": "a.wav", "audio_sha256": hashlib.sha256(b"a").hexdigest()},
            {"audio_file": "b.wav", "audio_sha256": hashlib.sha256(b"other").hexdigest()},
        ]
        attached = mdb.attach(rows, tmp_path)
        assert [row["audio_file"] for row in attached.rows] == ["a.wav"]
        assert attached.wrong == ("b.wav",)

    def test_says_where_to_ask_when_nothing_is_there(self, tmp_path):
        with pytest.raises(NoDataError, match=r"none of the 20 recordings.*medleydb\.weebly\.com"):
            mdb.attach(mdb.build_config("vanilla"), tmp_path)

    def test_needs_a_folder(self, tmp_path):
        with pytest.raises(NoDataError):
            mdb.attach(mdb.build_config("vanilla"), tmp_path / "none")


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    """A folder of the pieces of the stand-in, rendered."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUSIC_EVALS_CACHE", str(tmp_path_factory.mktemp("cache")))
        return render_pieces(tmp_path_factory.mktemp("rendered") / "pieces")


@pytest.mark.slow
def test_the_stand_in_can_be_rendered_and_attached(pieces):
    rows = mdb.build_config("stand_in")
    attached = mdb.attach(rows, pieces)
    assert len(attached.rows) == len(rows)
    assert not attached.missing
    assert soundfile.info(attached.rows[0]["audio"]).duration > 20


def test_edit_reads_what_is_attached(pieces, tmp_path):
    attached = mdb.attach(mdb.build_config("stand_in")[:3], pieces)
    sources = sources_in_files([str(write_sources(attached, tmp_path / "lists" / "sources.jsonl"))])
    ready = expand(sources, None, generate=(), default="Anything.", seed=0)
    assert [one.item for one in ready] == [row["id"] for row in attached.rows]
    assert {one.group for one in ready} == {"song_rock"}
    assert ready[0].instruction.target_caption() == "A piece played by a church organ."
    assert ready[0].instruction.source_prompt == "A rock piece."
    assert ready[0].instruction.text == "Let a church organ play all of it."


def test_build_is_what_the_folder_holds(tmp_path):
    run_script(BUILD, "--out", tmp_path)
    for path in BUILD.parent.glob("data/*/*.parquet"):
        assert (tmp_path / path.relative_to(BUILD.parent)).read_bytes() == path.read_bytes()
    assert (tmp_path / "manifest.json").read_text() == (BUILD.parent / "manifest.json").read_text()


def test_rows_hash_as_the_manifest_says():
    manifest = json.loads((BUILD.parent / "manifest.json").read_text())
    for config in mdb.CONFIGS:
        facts = manifest["files"][f"data/{config}/test-00000-of-00001.parquet"]
        assert rows_sha256(mdb.build_config(config)) == facts["rows_sha256"]
