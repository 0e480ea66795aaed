"""The folder of a study: blind, at one loudness, whole or not there."""

from __future__ import annotations

import hashlib
import json
import re
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from music_evals.audio.io import encode_flac
from music_evals.audio.loudness import integrated_loudness
from music_evals.errors import InvalidInputError, NoDataError, OutputError
from music_evals.files import write_atomically
from music_evals.studies import stimuli
from music_evals.studies.pairs import REFERENCE, read_pairs
from music_evals.studies.stimuli import Stimulus, Study, StudyItem, write_study

RATE = 8000


def tone(content: bytes) -> npt.NDArray[np.float32]:
    """Two seconds of a tone, its level the one letter of the content: a is loud and z is soft; ``.`` is silence."""
    level = 0.0 if content == b"." else 0.9 * 0.8 ** (content[0] - ord("a"))
    return (level * np.sin(2 * np.pi * 440 * np.arange(2 * RATE) / RATE)).astype(np.float32)


def item(name: str = "one", **contents: bytes) -> StudyItem:
    played = [(REFERENCE, b"a"), *(contents or {"x": b"h", "y": b"a", "z": b"h"}).items()]
    stimuli = tuple(Stimulus(system=system, content=content) for system, content in played)
    return StudyItem(item_id=name, group="song", stimuli=stimuli, start_sec=0.5, end_sec=1.0)


def write(out: Path, *items: StudyItem, **options: Any) -> Study:
    return write_study(out, items or (item(), item("two")), tone, **{"sample_rate": RATE, "seed": 3, **options})


def held(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_written_is_what_the_table_says(tmp_path: Path) -> None:
    study = write(tmp_path / "study", about={"task": "test"})
    assert read_pairs(tmp_path / "study/pairs.csv") == study.pairs
    assert [pair.system for pair in study.pairs] == [REFERENCE, "x", "y", "z"] * 2
    files = {pair.estimate for pair in study.pairs} | {pair.reference for pair in study.pairs}
    assert len(files) == 2 * 5  # the open reference is a file of its own
    assert set(held(tmp_path / "study")) == {"pairs.csv", "pairs.json", *files}
    assert json.loads((tmp_path / "study/pairs.json").read_text()) == study.about
    assert study.about == {"task": "test", "seed": 3, "sample_rate": RATE, "loudness_lufs": -23.0, "cut": {}}
    assert {(pair.seconds, pair.start_sec, pair.end_sec) for pair in study.pairs} == {(2.0, 0.5, 1.0)}
    assert list(tmp_path.iterdir()) == [tmp_path / "study"]


def test_every_file_is_equally_loud(tmp_path: Path) -> None:
    import soundfile

    study = write(tmp_path / "study", item(x=b"h", y=b"z"))
    for pair in study.pairs:
        samples, rate = soundfile.read(tmp_path / "study" / pair.estimate)
        assert integrated_loudness(samples, rate) == pytest.approx(-23.0, abs=0.05)
        assert (pair.reference_lufs, pair.estimate_lufs) == (-23.0, -23.0)
    gains = [pair.gain_db for pair in study.pairs]
    # a letter further is softer by 20 * log10(1 / 0.8) = 1.938 dB, and is turned up by so much more
    assert np.diff(np.array(gains)) == pytest.approx([7 * 1.93820, 18 * 1.93820], abs=0.01)


def test_names_say_nothing_and_equal_sounds_have_names_of_their_own(tmp_path: Path) -> None:
    study = write(tmp_path / "study")
    for pair in study.pairs:
        assert re.fullmatch(r"audio/[0-9a-f]{16}\.flac", pair.estimate)
    assert [pair.same_as for pair in study.pairs] == ["", "", REFERENCE, "x"] * 2
    first = study.pairs[:4]
    assert len({pair.estimate for pair in first} | {first[0].reference}) == 5
    assert first[1].estimate_sha256 == first[3].estimate_sha256 != first[0].estimate_sha256
    assert first[0].estimate_sha256 == first[0].reference_sha256
    # by its place in a listing a file tells nothing: systems stand in another order in each of many items
    many = write(tmp_path / "many", *(item(f"item {n}") for n in range(40)))
    orders = {
        tuple(pair.system for pair in sorted(many.pairs[n : n + 4], key=lambda pair: pair.estimate))
        for n in range(0, 160, 4)
    }
    assert len(orders) > 10


def test_files_are_written_in_the_order_of_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the times of the files would tell the order of the systems."""
    written: list[str] = []

    def write_noted(path: Path, content: bytes, **options: Any) -> Path:
        written.append(path.name)
        return write_atomically(path, content, **options)

    monkeypatch.setattr(stimuli, "write_atomically", write_noted)
    write(tmp_path / "study")
    for first in (0, 5):
        assert written[first : first + 5] == sorted(written[first : first + 5])
    assert written[10:] == ["pairs.json", "pairs.csv"]  # the key is last


def test_the_seed_decides_the_names_and_nothing_else(tmp_path: Path) -> None:
    for name, seed in (("first", 1), ("again", 1), ("other", 2)):
        write(tmp_path / name, seed=seed)
    first, again, other = (held(tmp_path / name) for name in ("first", "again", "other"))
    assert first == again
    sounds = [sorted(content for name, content in files.items() if "audio" in name) for files in (first, other)]
    assert sounds[0] == sounds[1]
    assert {name for name in first if "audio" in name}.isdisjoint(other)


def test_a_sound_is_rendered_once_and_progress_is_told(tmp_path: Path) -> None:
    asked: list[bytes] = []
    told: list[tuple[int, int]] = []

    def render(content: bytes) -> npt.NDArray[np.float32]:
        asked.append(content)
        return tone(content)

    write_study(
        tmp_path / "study",
        [item(), item("two")],
        render,
        sample_rate=RATE,
        seed=0,
        progress=lambda done, total, _: told.append((done, total)),
    )
    assert asked == [b"a", b"h"] * 2
    assert told == [(0, 2), (1, 2), (2, 2)]


@pytest.mark.parametrize("more", [4, 2**24, 2**24 + 1, 2**25 + 2])
def test_a_file_is_padded_by_more_than_one_block_can_hold(more: int) -> None:
    import soundfile

    file = encode_flac(np.linspace(-0.5, 0.5, 1000), 8000)
    padded = stimuli._padded(file, len(file) + more)
    assert len(padded) == len(file) + more
    assert np.array_equal(soundfile.read(BytesIO(padded))[0], soundfile.read(BytesIO(file))[0])


def test_veiled_files_differ_in_bytes_and_samples_and_have_one_size(tmp_path: Path) -> None:
    import soundfile

    study = write(tmp_path / "study", veiled="refuse")
    plain = write(tmp_path / "plain")
    for first in (0, 4):
        names = {pair.estimate for pair in study.pairs[first : first + 4]} | {study.pairs[first].reference}
        files = [tmp_path / "study" / name for name in names]
        assert len({path.read_bytes() for path in files}) == 5
        assert len({path.stat().st_size for path in files}) == 1
        assert len({soundfile.read(path)[0].tobytes() for path in files}) == 5
    for pair, same in zip(study.pairs, plain.pairs, strict=True):
        assert (pair.estimate, pair.same_as) == (same.estimate, same.same_as)
        noise = soundfile.read(tmp_path / "study" / pair.estimate)[0]
        noise -= soundfile.read(tmp_path / "plain" / same.estimate)[0]
        # triangular of one step: a variance of 1/6; rounding adds 1/12 in one file and as much in the other
        assert 20 * np.log10(noise.std()) == pytest.approx(10 * np.log10(1 / 6 + 2 / 12) - 90.31, abs=0.5)
        assert hashlib.sha256((tmp_path / "study" / pair.estimate).read_bytes()).hexdigest() == pair.estimate_sha256


def test_silence_stays_silent(tmp_path: Path) -> None:
    import soundfile

    study = write(tmp_path / "study", item(x=b"."))
    silent = study.pairs[1]
    assert (silent.estimate_lufs, silent.gain_db, silent.reference_lufs) == (None, None, -23.0)
    assert not soundfile.read(tmp_path / "study" / silent.estimate)[0].any()


def test_nothing_is_clipped(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="item 'one' would be clipped at -2 LUFS: its peak would be") as raised:
        write(tmp_path / "study", loudness_lufs=-2.0)
    # at 997 Hz a full-scale sine reads -3.0 LUFS (BS.1770-4); the weighting takes 0.7 dB more from one of 440 Hz
    decibels = float(re.search(r"be \+([\d.]+) dB", str(raised.value))[1])  # type: ignore[index]
    assert decibels == pytest.approx(1.0 + 0.7, abs=0.5)
    assert list(tmp_path.iterdir()) == []


def test_a_study_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    write(tmp_path / "study")
    before = held(tmp_path / "study")

    def breaks(content: bytes) -> npt.NDArray[np.float32]:
        if content == b"h":
            raise KeyboardInterrupt
        return tone(content)

    for out in ("study", "new"):
        with pytest.raises(KeyboardInterrupt):
            write_study(tmp_path / out, [item()], breaks, sample_rate=RATE, seed=0, overwrite=True)
    assert held(tmp_path / "study") == before
    assert list(tmp_path.iterdir()) == [tmp_path / "study"]


def test_a_study_is_replaced_only_when_that_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path / "study")
    with pytest.raises(InvalidInputError, match="holds a study"):
        write(tmp_path / "study", item())
    study = write(tmp_path / "study", item(), overwrite=True)
    files = {pair.estimate for pair in study.pairs} | {pair.reference for pair in study.pairs}
    assert set(held(tmp_path / "study")) == {"pairs.csv", "pairs.json", *files}


@pytest.mark.parametrize("name", ["ratings.csv", "audio/mine.flac", ".hidden"])
def test_files_of_others_are_never_lost(tmp_path: Path, name: str) -> None:
    write(tmp_path / "study")
    (tmp_path / "study" / name).write_text("dear to somebody")
    with pytest.raises(InvalidInputError, match=re.escape(f"holds {name}, which is not of a study")):
        write(tmp_path / "study", overwrite=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/notes.txt").write_text("dear to somebody")
    with pytest.raises(InvalidInputError, match=r"holds notes\.txt, which is not of a study"):
        write(tmp_path / "other", overwrite=True)
    with pytest.raises(InvalidInputError, match="is a file"):
        write(tmp_path / "other/notes.txt")
    assert (tmp_path / "study" / name).read_text() == "dear to somebody"


def test_an_empty_folder_may_be_filled_and_folders_above_are_made(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write(tmp_path / "empty")
    write(tmp_path / "a/b/study")
    assert held(tmp_path / "empty") == held(tmp_path / "a/b/study")


def test_a_folder_that_cannot_be_made_is_an_error_of_output(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        write(tmp_path / "file/study")


def test_an_item_starts_with_its_reference_and_a_study_has_items(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="first stimulus must be the reference"):
        StudyItem(item_id="one", group="song", stimuli=(Stimulus(system="x", content=b"a"),))
    with pytest.raises(NoDataError):
        write_study(tmp_path / "study", [], tone, sample_rate=RATE, seed=0)
    assert list(tmp_path.iterdir()) == []


def test_hashes_are_those_of_the_files(tmp_path: Path) -> None:
    study = write(tmp_path / "study")
    for pair in study.pairs:
        content = (tmp_path / "study" / pair.estimate).read_bytes()
        assert hashlib.sha256(content).hexdigest() == pair.estimate_sha256
