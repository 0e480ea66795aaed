"""The stand-in is what its rule makes, and an archive of pieces becomes contexts of their upper lines."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from music_evals.datasets.ailabs_1k7 import build
from music_evals.datasets.manifest import load_split, rows_sha256
from music_evals.datasets.tune_files import write_tunes
from music_evals.errors import NoDataError
from music_evals.symbolic.melody import skyline
from music_evals.symbolic.midi import write_midi

FOLDER = Path(__file__).resolve().parents[3] / "datasets_scripts" / "ailabs_1k7"


@pytest.mark.slow
def test_the_stand_in_is_what_the_rule_makes(tmp_path: Path) -> None:
    manifest = json.loads((FOLDER / "manifest.json").read_text())
    placed = build.stand_ins()
    made = write_tunes(tmp_path, {"stand_in": placed})
    assert {name: facts["rows_sha256"] for name, facts in made["files"].items()} == {
        name: facts["rows_sha256"] for name, facts in manifest["files"].items()
    }
    assert len(placed) == 40


def test_a_piece_has_a_melody_over_an_accompaniment() -> None:
    piece = build.piano_piece(3)
    line = skyline(piece.notes)
    assert len(line) < len(piece.notes)
    assert line["pitch"].min() > piece.notes["pitch"].min()


@pytest.mark.slow
def test_an_archive_becomes_the_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSIC_EVALS_CACHE", str(tmp_path / "cache"))
    with pytest.raises(NoDataError, match="archive of AILabs1k7"):
        load_split("ailabs_1k7", "ailabs_1k7", "train")
    with zipfile.ZipFile(tmp_path / "Pop1K7.zip", "w") as archive:
        for seed in range(6):
            archive.writestr(f"midi_analyzed/{seed}.mid", write_midi(build.piano_piece(100 + seed, 18)))
        archive.writestr("midi_analyzed/short.mid", write_midi(build.piano_piece(7, 8)))
    build.build_archive(tmp_path / "Pop1K7.zip")
    splits = ("train", "validation", "test")
    rows = [row for split in splits for row in load_split("ailabs_1k7", "ailabs_1k7", split)]
    assert len(rows) == 6 * 3
    assert {row["song"] for row in rows} == {f"midi_analyzed/{seed}" for seed in range(6)}
    assert rows_sha256(rows)
    manifest = json.loads((build.place_of() / "manifest.json").read_text())
    assert manifest["found"] == {"files": 7, "pieces": 6}
    assert list(manifest["left_out"]) == ["midi_analyzed/short"]
