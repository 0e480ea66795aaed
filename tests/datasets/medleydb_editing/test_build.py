"""The manifest of MedleyDB excerpts: counts as published, sentences and recordings joined from the user's copies."""

from __future__ import annotations

import csv
import hashlib
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import soundfile

from music_evals.datasets.manifest import rows_sha256
from music_evals.datasets.medleydb_editing import build as mdb
from music_evals.errors import InvalidInputError, NoDataError, UnreadableFileError

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
    pairs = Counter((row["excerpt"], row["instruction_sha256_16"]) for row in mdb.build_config("zeta"))
    assert [excerpt for (excerpt, _), count in pairs.items() if count > 1] == ["FreeJazz"]


def test_vanilla_takes_twenty_excerpts():
    rows = mdb.build_config("vanilla")
    assert len({row["excerpt"] for row in rows}) == len(rows) == 20
    assert mdb.build_config("vanilla") == rows


def test_no_published_sentence_is_in_the_repository():
    assert all(row["instruction"] is None for config in ("zeta", "vanilla") for row in mdb.build_config(config))


def test_the_stand_in_has_a_sentence_and_a_label_in_each_row():
    rows = mdb.build_config("stand_in")
    assert all(row["instruction"] and row["origin"] == "music_evals" for row in rows)
    assert Counter(row["excerpt"] for row in rows) == dict.fromkeys(mdb.STAND_IN_PIECES, 3)


@pytest.fixture
def tiny_table(monkeypatch):
    """A published table of two sentences that we know."""
    source, target = "A drum.", "A bell."
    digests = {text: hashlib.sha256(text.encode()).hexdigest()[:16] for text in (source, target)}
    row = {"excerpt": "Toy", "source_index": "1", "needs_source": "yes", "sha256_16": digests[target]}
    monkeypatch.setattr(mdb, "_published", lambda: ({"Toy": [digests[source]]}, [row]))
    return source, target


def write_table(path: Path, column: str, sentence: str) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([["filename", column], ["MusicDelta_Toy_MIX.wav", sentence]])
    return path


def test_sentences_are_joined_by_their_hash(tmp_path, tiny_table):
    source, target = tiny_table
    tables = [
        write_table(tmp_path / "targets.csv", "target_captions", target),
        write_table(tmp_path / "sources.csv", "source_captions", source),
    ]
    (row,) = mdb.build_config("zeta", mdb.read_prompts(tables))
    assert (row["instruction"], row["source_description"], row["needs_source"]) == (target, source, True)


def test_another_sentence_is_refused(tmp_path, tiny_table):
    table = write_table(tmp_path / "targets.csv", "target_captions", "A horn.")
    with pytest.raises(InvalidInputError, match="as published"):
        mdb.build_config("zeta", mdb.read_prompts([table]))


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"\xff\xfe\x00"])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(UnreadableFileError, match=r"table\.csv"):
        mdb.read_prompts([path])


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(NoDataError, match="MedleyMDPrompts"):
        mdb.read_prompts([tmp_path / "none.csv"])


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
        with pytest.raises(NoDataError, match="no such folder"):
            mdb.attach(mdb.build_config("vanilla"), tmp_path / "none")


def test_the_stand_in_can_be_rendered_and_attached(tmp_path, monkeypatch):
    monkeypatch.setenv("MUSIC_EVALS_CACHE", str(tmp_path / "cache"))
    rows = mdb.build_config("stand_in")
    attached = mdb.attach(rows, mdb.render_stand_in(tmp_path / "pieces"))
    assert len(attached.rows) == len(rows)
    assert not attached.missing
    assert soundfile.info(attached.rows[0]["audio"]).duration > 20


def test_build_is_what_the_folder_holds(tmp_path):
    subprocess.run([sys.executable, BUILD, "--out", tmp_path], check=True, capture_output=True)
    for path in BUILD.parent.glob("data/*/*.parquet"):
        assert (tmp_path / path.relative_to(BUILD.parent)).read_bytes() == path.read_bytes()
    assert (tmp_path / "manifest.json").read_text() == (BUILD.parent / "manifest.json").read_text()


def test_build_keeps_sentences_out_of_the_folder(tmp_path):
    done = subprocess.run(
        [sys.executable, BUILD, "--prompts", tmp_path / "t.csv"], check=False, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "another one" in done.stderr


def test_rows_hash_as_the_manifest_says():
    manifest = json.loads((BUILD.parent / "manifest.json").read_text())
    for config in mdb.CONFIGS:
        facts = manifest["files"][f"data/{config}/test-00000-of-00001.parquet"]
        assert rows_sha256(mdb.build_config(config)) == facts["rows_sha256"]
