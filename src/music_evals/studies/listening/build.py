"""From a table of pairs to the folder of a listening test, and back to its key.

The table is `pairs.csv` of any task (`studies.pairs`): sounds that were edited, filled in, carried over to a style. All
that is played is mixed down, brought to one loudness and written under names that say nothing (`studies.stimuli`).

In the folder's ``key/`` lie `pairs.csv`, with the blind files that are played; `checks.csv`, with the number of tones
of each attention check; and `test.json`, with all settings and how long each file plays.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.audio.io import AudioPolicy, load_audio
from music_evals.csv_files import csv_rows, csv_text
from music_evals.errors import InvalidInputError, UnreadableFileError
from music_evals.files import parse_json
from music_evals.pipelines.study_tables import located_at
from music_evals.studies.folders import Introduction, StudyFolder, write_study_folder
from music_evals.studies.listening.answers import MOST_TONES, ListeningKey
from music_evals.studies.listening.design import make_plans
from music_evals.studies.listening.screening import ANCHOR
from music_evals.studies.listening.settings import (
    KIND,
    ListeningSettings,
    check_pairs_of_test,
    page_settings,
    played_systems,
)
from music_evals.studies.pairs import REFERENCE, StudyPair, pairs_text, read_pairs
from music_evals.studies.stimuli import (
    ITEM_COLUMNS,
    LOUDNESS_LUFS,
    STIMULUS_COLUMNS,
    Stimulus,
    Study,
    StudyItem,
    write_study,
)

__all__ = ["BuiltTest", "build_listening_test", "low_passed", "read_listening_key", "tones"]

SAMPLE_RATE = 44_100
"""Of all that is played, in Hz."""

CHECK_SEC = 4.0
"""Length of an attention check, whatever its tones."""
TONE_SEC, TONE_STEP_SEC = 0.35, 0.7

_TEST, _PAIRS, _CHECKS = "test.json", "pairs.csv", "checks.csv"
_STOP_DB = 60.0
_TRANSITION = 8 / 7
"""End of the transition over its start: from 3.5 to 4 kHz, as BS.1534-3 has it."""

Samples = npt.NDArray[np.float32]


class BuiltTest(NamedTuple):
    """A listening test that was written."""

    study: StudyFolder
    pairs: tuple[StudyPair, ...]
    """Every sound that is rated."""
    cut: dict[str, dict[str, float]]
    """Item -> row and system -> seconds by which it was longer than the shortest; test.json has it too."""


def build_listening_test(
    pairs: str | os.PathLike[str],
    out: str | os.PathLike[str],
    settings: ListeningSettings,
    *,
    study: str,
    introduction: Introduction,
    page: Mapping[str, bytes],
    loudness_lufs: float = LOUDNESS_LUFS,
    progress: Callable[[int, int, str], object] | None = None,
) -> BuiltTest:
    """Build the folder of a blind listening test from a table of pairs of any task.

    Nothing stands at `out` yet; `study`, `introduction` and `page` are those of `folders.write_study_folder`, and every
    file is brought to `loudness_lufs`. `progress` is called with the items that are done, all items, and a word.

    Raises the errors of `pairs.read_pairs` and `settings.check_pairs_of_test`; `UnreadableFileError` where a file is no
    audio; `InvalidInputError` where sounds of an item are not equally long (the message names the rows), a hidden
    reference is not the reference, or a file would be clipped; `UnknownNameError` for a system that the table does not
    have; `OutputError` where the folder cannot be written.
    """
    place = Path(pairs)
    rows = read_pairs(place)
    check_pairs_of_test(rows, settings)
    sounds = _Sounds(place, rows, settings)
    with tempfile.TemporaryDirectory() as folder:
        common: dict[str, Any] = {"sample_rate": SAMPLE_RATE, "seed": settings.seed, "loudness_lufs": loudness_lufs}
        common["veiled"] = settings.lengths
        test = write_study(f"{folder}/test", sounds.items(), sounds.render, progress=progress, **common)
        checks = {f"check {number}": b"tones %d" % count for number, count in enumerate(_counts(settings), start=1)}
        items = [
            StudyItem(item_id=name, group=name, stimuli=(Stimulus(system=REFERENCE, content=content),))
            for name, content in checks.items()
        ]
        tested = write_study(f"{folder}/checks", items, sounds.render, **common).pairs if items else ()
        rated: list[StudyPair] = []
        first: dict[tuple[str, str], str] = {}  # who is not rated is no other's `same_as`
        for pair in (pair for pair in test.pairs if pair.system in sounds.played):
            same = first.setdefault((pair.item_id, pair.same_as or pair.system), pair.system)
            rated.append(dataclasses.replace(pair, same_as="" if same == pair.system else same))
        plans = make_plans(rated, settings, [pair.estimate for pair in tested])
        lengths = {pair.estimate: pair.seconds or 0.0 for pair in (*rated, *tested)}
        if settings.is_reference_open:
            lengths |= {pair.reference: pair.seconds or 0.0 for pair in test.pairs if pair.system == REFERENCE}
        counts = {pair.estimate: int(checks[pair.item_id].split()[1]) for pair in tested}
        audio = {name: Path(folder, "checks" if name in counts else "test", name) for name in sorted(lengths)}
        key = _key(rated, settings, counts, lengths, test)
        about: dict[str, Any] = {"kind": KIND, "study": study, "introduction": introduction, "plans": plans}
        written = write_study_folder(out, **about, settings=page_settings(settings), page={**page, **audio}, key=key)
    return BuiltTest(written, tuple(rated), test.about["cut"])


def _counts(settings: ListeningSettings) -> list[int]:
    """Draw how many tones each attention check holds: all numbers, before one comes again."""
    rng = np.random.default_rng([settings.seed, 2])
    rounds = [rng.permutation(MOST_TONES) + 1 for _ in range(0, settings.checks, MOST_TONES)]
    return [int(count) for count in np.concatenate(rounds)[: settings.checks]] if rounds else []


class _Sounds:
    """What is heard, and how it comes to sound; equal files sound the same."""

    def __init__(self, table: Path, pairs: Sequence[StudyPair], settings: ListeningSettings) -> None:
        self.table = table
        self.settings = settings
        self.pairs = pairs
        self.played = played_systems(settings, [pair.system for pair in pairs])
        self._files: dict[bytes, tuple[int, str]] = {}  # digest -> row and name

    def items(self) -> list[StudyItem]:
        """Return everything that is heard of each item."""
        by_item: dict[str, list[tuple[int, StudyPair]]] = {}
        for number, pair in enumerate(self.pairs, start=1):
            by_item.setdefault(pair.item_id, []).append((number, pair))
        return [self._item(rows) for rows in by_item.values()]

    def _item(self, rows: Sequence[tuple[int, StudyPair]]) -> StudyItem:
        number, first = rows[0]
        reference = self._content(number, first.reference)
        stimuli = {}
        for row, pair in rows:
            content = self._content(row, pair.estimate)
            if pair.system == REFERENCE and content != reference:
                raise InvalidInputError(
                    f"{self.table}, row {row}: the system {REFERENCE!r} must be the reference itself, and "
                    f"{pair.estimate} is another file than {pair.reference}; give it another name"
                )
            columns = {column: getattr(pair, column) for column in STIMULUS_COLUMNS}
            stimuli[pair.system] = Stimulus(**columns, content=content, origin=f"row {row}")
        stimuli.setdefault(REFERENCE, Stimulus(system=REFERENCE, content=reference, origin=f"row {number}"))
        if not (self.settings.is_reference_open or REFERENCE in self.played):
            stimuli[REFERENCE] = dataclasses.replace(stimuli[REFERENCE], is_heard=False)
        stimuli.setdefault(ANCHOR, Stimulus(system=ANCHOR, content=b"anchor " + reference))
        systems = [REFERENCE, *(system for system in self.played if system != REFERENCE)]
        columns = {column: getattr(first, column) for column in ITEM_COLUMNS}
        return StudyItem(**columns, stimuli=tuple(stimuli[system] for system in systems))

    def _content(self, row: int, name: str) -> bytes:
        digest = hashlib.sha256((self.table.parent / name).read_bytes()).hexdigest().encode()
        self._files.setdefault(digest, (row, name))
        return digest

    def render(self, content: bytes) -> Samples:
        """Return how a content sounds."""
        kind, _, rest = content.partition(b" ")
        if kind == b"tones":
            return tones(int(rest), SAMPLE_RATE)
        if kind == b"anchor":
            return low_passed(self.render(rest), SAMPLE_RATE, self.settings.anchor_hz)
        row, name = self._files[content]
        with located_at(f"{self.table}, row {row}"):
            policy = AudioPolicy(sample_rate=SAMPLE_RATE, peak_normalise=False)
            return load_audio(self.table.parent / name, policy=policy).samples


def low_passed(samples: Samples, sample_rate: int, edge_hz: float) -> Samples:
    """Return a sound of shape (n,) without what lies above an edge, nothing moved in time: an anchor of MUSHRA."""
    from scipy.signal import firwin, kaiserord, oaconvolve

    width_hz = edge_hz * (_TRANSITION - 1)  # what lies below the edge passes; behind the transition all is 60 dB softer
    n_taps, beta = kaiserord(_STOP_DB, 2 * width_hz / sample_rate)
    taps = firwin(n_taps | 1, edge_hz + width_hz / 2, window=("kaiser", beta), fs=sample_rate)
    return np.asarray(oaconvolve(samples.astype(np.float64), taps, mode="same"), dtype=np.float32)


def tones(count: int, sample_rate: int) -> Samples:
    """Return an attention check: `count` short tones of 660 Hz, shape (n,); equally long whatever the count."""
    samples = np.zeros(round(CHECK_SEC * sample_rate), dtype=np.float32)
    n = round(TONE_SEC * sample_rate)
    tone = 0.5 * np.sin(2 * np.pi * 660 * np.arange(n) / sample_rate) * np.hanning(n)
    for number in range(count):
        start = round((0.25 + number * TONE_STEP_SEC) * sample_rate)
        samples[start : start + n] = tone
    return samples


def _key(
    rated: Sequence[StudyPair],
    settings: ListeningSettings,
    counts: Mapping[str, int],
    lengths: Mapping[str, float],
    study: Study,
) -> dict[str, bytes | Path]:
    """Return what stays with the leader; paths of the table start at its folder."""
    hidden = {pair.reference for pair in rated} - lengths.keys()  # originals that nobody hears
    places = {name: f"../page/{name}" for name in lengths} | {name: name for name in hidden}
    moved = [
        dataclasses.replace(pair, estimate=places[pair.estimate], reference=places[pair.reference]) for pair in rated
    ]
    tones = ([PurePosixPath(name).name, count] for name, count in counts.items())
    test = {
        "settings": settings.to_dict(),
        "seconds": {PurePosixPath(name).name: seconds for name, seconds in lengths.items()},
        "cut": study.about["cut"],
    }
    return {
        _PAIRS: pairs_text(moved).encode(),
        _CHECKS: csv_text(("file", "tones"), tones).encode(),
        _TEST: (json.dumps(test, indent=1, allow_nan=False) + "\n").encode(),
        **{name: study.folder / name for name in sorted(hidden)},
    }


def read_listening_key(folder: str | os.PathLike[str]) -> ListeningKey:
    """Read the key of a listening test: the folder ``key/`` of its study.

    Raises `NoDataError`, `UnreadableFileError` or `InvalidInputError` where that is no such folder.
    """
    place = Path(folder)
    pairs = read_pairs(place / _PAIRS, check_files=False)
    try:
        test = parse_json((place / _TEST).read_bytes(), _TEST)
        table = csv_rows((place / _CHECKS).read_text(encoding="utf-8"), _CHECKS)
        checks = {row["file"]: int(row["tones"]) for row in table}
        seconds = {str(name): float(value) for name, value in test["seconds"].items()}
        settings = test["settings"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableFileError(f"{place} is no key of a listening test ({error}); take it from a copy") from error
    by_file = {PurePosixPath(pair.estimate).name: pair for pair in pairs}
    return ListeningKey(ListeningSettings.from_dict(settings), by_file, checks, seconds)
