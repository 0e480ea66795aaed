"""Refinements of Lakh pieces: the fifty configurations, the rule that chooses pieces, and what `edit` reads."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest
from tests.datasets.making import run_script

from music_evals.annotations import DRUMS, Score, TimeSignature
from music_evals.benchmark.tasks.edits.sources import expand, sources_in_files
from music_evals.datasets.lakh_refinpaint import build as lakh
from music_evals.datasets.manifest import rows_sha256
from music_evals.editing import refinpaint_tokens as tokens
from music_evals.errors import InvalidInputError, NoDataError
from music_evals.symbolic.midi import read_midi, write_midi
from music_evals.symbolic.notes import make_notes

BUILD = Path(__file__).resolve().parents[3] / "datasets_scripts" / "lakh_refinpaint" / "build.py"
FOUR = (TimeSignature(0, 4, 4),)


def piece(pitch: int = 60, *, bars=range(16), a_bar: int = 1, meter=FOUR, program: int = 0) -> bytes:
    """Return a MIDI file with so many notes in each of these bars."""
    onsets = [bar * 1920 + note * 120 for bar in bars for note in range(a_bar)]
    notes = make_notes(onsets, [onset + 100 for onset in onsets], [pitch] * len(onsets))
    return write_midi(Score(notes, 480, meter, voices=("Tune",), programs=(program,)))


def put(folder: Path, content: bytes, name: str | None = None) -> str:
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    path = folder / md5[0] / f"{name or md5}.mid"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return md5


@pytest.mark.parametrize("config", lakh.CONFIGS)
def test_six_pieces_have_fifty_configurations(config):
    rows = lakh.build_config(config)
    assert Counter(row["piece"] for row in rows) == dict.fromkeys(range(1, 7), 50)
    assert set(Counter((row["piece"], row["bars"], row["confidence"]) for row in rows).values()) == {1}
    assert len({row["bars"] for row in rows}) == 10
    assert {row["confidence"] for row in rows} == {0, 2, 4, 6, 8}
    assert all(0 <= row["first_bar"] < row["end_bar"] <= 16 for row in rows)


def test_lakh_names_no_file():
    assert {(row["midi_file"], row["midi_md5"]) for row in lakh.build_config("lakh")} == {(None, None)}


class TestRule:
    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (piece(), ""),
            (piece(a_bar=10), ""),
            (piece(a_bar=11), "176 notes begin"),
            (piece(bars=range(15)), "no notes"),
            (piece(bars=range(1, 18)), "no notes"),
            (piece(program=DRUMS), "no notes"),
            (piece(meter=(TimeSignature(0, 3, 4),)), "not in 4/4"),
            (piece(meter=(*FOUR, TimeSignature(3840, 2, 4))), "not in 4/4"),
            (piece(meter=()), "does not say its meter"),
            (b"no MIDI file", "cannot be read"),
        ],
    )
    def test_says_what_does_not_suit(self, tmp_path, content, reason):
        path = tmp_path / "a.mid"
        path.write_bytes(content)
        found = lakh.unsuitable(path)
        assert reason in found
        assert bool(found) == bool(reason)

    def test_takes_the_first_six_by_md5_that_suit(self, tmp_path):
        suit = [put(tmp_path, piece(pitch)) for pitch in range(60, 68)]
        put(tmp_path, piece(meter=(TimeSignature(0, 3, 4),)))
        put(tmp_path, piece(72), name="0" * 32)  # content of another MD5, before all others
        put(tmp_path, piece(73), name="a song")
        attached = lakh.attach(lakh.build_config("lakh"), tmp_path)
        assert list(dict.fromkeys(row["midi_md5"] for row in attached.rows)) == sorted(suit)[:6]
        assert len(attached.rows) == 300
        assert attached.summary == "300 rows with a score; 0 scores missing, 0 with another checksum"
        row = attached.rows[0]
        assert row["excerpt"] == Path(row["audio"]).stem == row["midi_md5"]

    def test_says_how_many_suit(self, tmp_path):
        for pitch in range(60, 65):
            put(tmp_path, piece(pitch))
        with pytest.raises(NoDataError, match=r"5 files suit, 6 are needed.*colinraffel"):
            lakh.attach(lakh.build_config("lakh"), tmp_path)


class TestNamed:
    def test_pieces_are_taken_in_their_order(self, tmp_path):
        md5s = [put(tmp_path, piece(pitch)) for pitch in range(60, 66)]
        attached = lakh.attach(lakh.build_config("lakh"), tmp_path, md5s=md5s)
        assert [row["midi_md5"] for row in attached.rows[::50]] == md5s

    def test_what_is_missing_or_has_another_checksum_is_reported(self, tmp_path):
        md5s = [put(tmp_path, piece(pitch)) for pitch in range(60, 64)]
        md5s += ["a" * 32, "b" * 32]
        put(tmp_path, piece(80), name="b" * 32)
        attached = lakh.attach(lakh.build_config("lakh"), tmp_path, md5s=md5s)
        assert len(attached.rows) == 200
        assert (attached.missing, attached.wrong) == (("a" * 32 + ".mid",), ("b" * 32 + ".mid",))

    def test_one_that_does_not_suit_is_refused(self, tmp_path):
        md5s = [put(tmp_path, piece(pitch)) for pitch in range(60, 65)] + [put(tmp_path, piece(bars=range(4)))]
        with pytest.raises(InvalidInputError, match=rf"{md5s[-1]} cannot be refined.*no notes"):
            lakh.attach(lakh.build_config("lakh"), tmp_path, md5s=md5s)

    @pytest.mark.parametrize("md5s", [["a" * 32], ["a" * 32] * 6, ["song"] * 6, [f"{n}" * 31 for n in range(6)]])
    def test_must_be_six_md5s(self, tmp_path, md5s):
        with pytest.raises(InvalidInputError, match="6 different MD5s"):
            lakh.attach(lakh.build_config("lakh"), tmp_path, md5s=md5s)

    def test_are_not_for_the_stand_in(self, tmp_path):
        with pytest.raises(InvalidInputError, match="stand_in"):
            lakh.attach(lakh.build_config("stand_in"), tmp_path, md5s=["a" * 32])


def test_attach_needs_a_folder_with_pieces(tmp_path):
    with pytest.raises(NoDataError):
        lakh.attach(lakh.build_config("lakh"), tmp_path / "none")
    with pytest.raises(NoDataError, match="write_stand_in"):
        lakh.attach(lakh.build_config("stand_in"), tmp_path)


@pytest.fixture(scope="module")
def attached(tmp_path_factory):
    folder = lakh.write_stand_in(tmp_path_factory.mktemp("stand_in") / "pieces")
    return lakh.attach(lakh.build_config("stand_in"), folder)


def test_the_stand_in_suits_and_fits_into_512_tokens(attached):
    assert len(attached.rows) == 300
    for path in {row["audio"] for row in attached.rows}:
        assert not lakh.unsuitable(path)
        encoded = tokens.encode(read_midi(path))
        end = encoded.bars[16] if len(encoded.bars) > 16 else len(encoded.tokens)
        assert end + 2 <= 512


def test_edit_reads_what_is_attached(attached, tmp_path):
    sources = sources_in_files([str(lakh.write_sources(attached, tmp_path / "sources.jsonl"))])
    ready = expand(sources, None, generate=(), default="Anything.", seed=0)
    assert len(ready) == 300
    first = ready[0].instruction
    assert (first.bars, first.confidence, first.task) == ((0, 4), 0, "refine")
    assert {one.group for one in ready} == set(lakh.STAND_IN_PIECES)


def test_a_changed_piece_of_the_stand_in_is_not_taken(tmp_path):
    folder = lakh.write_stand_in(tmp_path)
    (folder / "song_pop.mid").write_bytes(piece())
    attached = lakh.attach(lakh.build_config("stand_in"), folder)
    assert (len(attached.rows), attached.wrong) == (250, ("song_pop.mid",))


def test_build_is_what_the_folder_holds(tmp_path):
    run_script(BUILD, "--out", tmp_path)
    for path in [*BUILD.parent.glob("data/*/*.parquet"), BUILD.parent / "manifest.json"]:
        assert (tmp_path / path.relative_to(BUILD.parent)).read_bytes() == path.read_bytes()


def test_rows_hash_as_the_manifest_says():
    manifest = json.loads((BUILD.parent / "manifest.json").read_text())
    for config in lakh.CONFIGS:
        facts = manifest["files"][f"data/{config}/test-00000-of-00001.parquet"]
        assert rows_sha256(lakh.build_config(config)) == facts["rows_sha256"]
