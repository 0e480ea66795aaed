"""MUSIB's folk data from an archive; a small one of our own stands for folk-rnn's."""

from __future__ import annotations

import io
import json
import runpy
import tarfile
from pathlib import Path

import pytest
from tests.datasets.making import chords, melody, score

from music_evals.annotations import Score, TimeSignature
from music_evals.datasets.irish_folk import build
from music_evals.datasets.irish_folk.folk_rnn import (
    PUBLISHED,
    FolkRnn,
    compare_with_published,
    read_folk_rnn,
    song_counts,
)
from music_evals.datasets.manifest import load_split
from music_evals.errors import InvalidInputError, NoDataError
from music_evals.symbolic.midi import write_midi
from music_evals.symbolic.notes import make_notes


def archive(path: Path, scores: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as file:
        for name, content in scores.items():
            entry = tarfile.TarInfo(f"midi/{name}.mid")
            entry.size = len(content)
            file.addfile(entry, io.BytesIO(content))
    return path


def two_voices() -> Score:
    notes = make_notes([480 * place for place in range(80)] * 2, [480] * 160, melody(1) * 2, voice=[0] * 80 + [1] * 80)
    return Score(notes, 480, (TimeSignature(0, 4, 4),), voices=("a", "b"))


@pytest.fixture(scope="module")
def small_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scores = {f"tune{seed:02d}": write_midi(score(melody(seed, 17 + seed % 3))) for seed in range(12)}
    scores |= {
        "twice": scores["tune03"],
        "waltz": write_midi(score(melody(30), meter=(3, 4))),
        "short": write_midi(score(melody(31, 16))),  # the filter of the code asks for 17 measures
        "voices": write_midi(two_voices()),
        "chords": write_midi(chords(melody(32))),
        "empty": write_midi(Score(make_notes([], [], []), 480)),
        "broken": b"MThd and no more",
    }
    return archive(tmp_path_factory.mktemp("folk") / "midi.tgz", scores)


@pytest.fixture(scope="module")
def read(small_archive: Path) -> tuple[FolkRnn, list[int], list[tuple[int, int]]]:
    """What is found, and what is told meanwhile: files unpacked, and files read of all."""
    unpacked: list[int] = []
    steps: list[tuple[int, int]] = []
    found = read_folk_rnn(small_archive, unpacked=unpacked.append, progress=lambda *step: steps.append(step))
    return found, unpacked, steps


@pytest.mark.slow
def test_the_filters_of_musib(read: tuple[FolkRnn, list[int], list[tuple[int, int]]]) -> None:
    found, *_ = read
    assert [tune.name for tune in found.tunes] == [f"midi/tune{seed:02d}" for seed in range(12)]
    removed = {step.name: [name.removeprefix("midi/") for name, _ in step.removed] for step in found.filters.steps}
    assert removed == {
        "readable": ["broken"],
        "non_empty": ["empty"],
        "unique": ["twice"],
        "only_4_4": ["chords", "waltz"],
        "n_instruments=1": ["voices"],
        "monophonic_onsets": [],
        "min_measures=17": ["short"],
    }
    assert [tune.n_measures for tune in found.tunes[:3]] == [17, 18, 19]


def test_the_published_counts_follow_from_tunes_and_measures(
    read: tuple[FolkRnn, list[int], list[tuple[int, int]]],
) -> None:
    assert song_counts(read[0].tunes) == {
        "songs": 12,
        "measures": 4 * (17 + 18 + 19),
        "published_contexts": 4 * (1 + 2 + 3),
        "windows": 4 * (2 + 3 + 4),
    }
    assert PUBLISHED["measures"] - 16 * PUBLISHED["songs"] == PUBLISHED["published_contexts"]
    assert PUBLISHED["measures"] - 15 * PUBLISHED["songs"] == PUBLISHED["windows"]


def test_each_file_is_counted_as_it_is_unpacked_and_as_it_is_read(
    read: tuple[FolkRnn, list[int], list[tuple[int, int]]],
) -> None:
    _, unpacked, steps = read
    assert unpacked == list(range(1, 20))
    assert steps[-1] == (19, 19)


def test_counts_stand_beside_the_published_ones() -> None:
    lines = compare_with_published(PUBLISHED).splitlines()
    assert lines[0].split() == ["tunes", "17,538", "found,", "17,538", "published"]
    assert [line.split()[0] for line in lines[1:4]] == ["measures", "contexts", "windows"]
    assert lines[-1] == "all are equal to the published counts"
    other = compare_with_published({**PUBLISHED, "songs": 17_537, "windows": 0}).splitlines()[-1]
    assert other.startswith("warning: not the published number of tunes, windows;")


@pytest.mark.slow
def test_the_script_says_what_was_found(
    small_archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MUSIC_EVALS_CACHE", str(tmp_path / "cache"))
    script = Path(__file__).parents[3] / "datasets_scripts" / "irish_folk" / "build.py"
    command = [str(script), "--source", str(small_archive), "--out", str(tmp_path / "out")]
    monkeypatch.setattr("sys.argv", command)
    runpy.run_path(str(script), run_name="__main__")
    out, err = capsys.readouterr()
    assert "tunes            12 found,    17,538 published" in out
    assert "warning: not the published number of tunes, measures, contexts, windows" in out
    assert "unpacking the archive: 19file" in err


@pytest.mark.slow
def test_the_archive_becomes_two_configs(small_archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSIC_EVALS_CACHE", str(tmp_path))
    with pytest.raises(NoDataError, match=r"midi\.tgz of folk-rnn"):
        load_split("irish_folk", "folk_rnn", "train")
    build.build_folk_rnn(small_archive)
    rows = [row for split in ("train", "validation", "test") for row in load_split("irish_folk", "folk_rnn", split)]
    assert len(rows) == 36
    assert {row["collection"] for row in rows} == {"folk_rnn"}
    small = {row["song"] for row in load_split("irish_folk", "folk_rnn_small", "train")}
    assert small <= {row["song"] for row in rows}
    manifest = json.loads((build.place_of("folk_rnn") / "manifest.json").read_text())
    assert manifest["found"]["songs"] == 12
    assert manifest["published"] == PUBLISHED
    with pytest.raises(InvalidInputError, match="is there already"):
        build.build_folk_rnn(small_archive)


def test_another_archive_is_named(tmp_path: Path) -> None:
    other = archive(tmp_path / "midi.tgz", {"waltz": write_midi(score(melody(1), meter=(3, 4)))})
    with pytest.raises(NoDataError, match="none of 1 files passes the filters"):
        read_folk_rnn(other)
