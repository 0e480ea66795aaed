"""What `edits.yaml` says of the edits of `known_edits`, and whether a label is true of a truth before and after.

The labels are claims about the written music. `holds` checks one mechanically on the annotations of a source and of
what an edit made of it, so that no row carries a label that is not so.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Chords, Features, Melody
from music_evals.datasets.known_edits.harmony import transpose_label
from music_evals.yaml_files import packaged_yaml

TOLERANCE_SEC = 0.05  # "same" in edits.yaml: times within 50 ms, where an edit moves single notes
# the window of the boundary F-measure: a lead-in shorter than that leaves the form as it is
SECTION_TOLERANCE_SEC = 0.5
REST_SEC = 0.14
_EXACT_SEC = 2e-3
_MOTIF = 3
_LABELS = ("same", "shifted", "scaled", "changed")

Annotation = TypeVar("Annotation")

FloatArray = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of edit as `edits.yaml` declares it."""

    name: str  # its name and what is done
    description: str
    strengths: tuple[float, ...]  # from weak to strong
    needs: str  # what a piece must offer, or ""
    labels: tuple[Mapping[str, str], ...]  # one mapping field -> label for each strength, every field named


@functools.cache
def declared() -> dict[str, Any]:
    """Return `edits.yaml` as it stands."""
    read: dict[str, Any] = packaged_yaml("music_evals.datasets.known_edits", "edits.yaml")
    return read


@functools.cache
def kinds() -> dict[str, Kind]:
    """Return the kinds of edit by name, in the order of `edits.yaml`."""
    fields = declared()["fields"]
    by_name = {}
    for name, entry in declared()["kinds"].items():
        strengths = tuple(entry["strengths"])
        declared_labels = {field: entry.get("labels", {}).get(field, "same") for field in fields}
        # one label for all strengths, or one each
        labels = tuple(
            {field: label if isinstance(label, str) else label[index] for field, label in declared_labels.items()}
            for index in range(len(strengths))
        )
        by_name[name] = Kind(name, entry["what"], strengths, entry.get("needs", ""), labels)
    return by_name


def pieces() -> tuple[str, ...]:
    """Return the ids of all pieces, the tuning half first."""
    return tuple(itertools.chain(*declared()["pieces"].values()))


def half_of(piece: str) -> str:
    """Return ``"tuning"`` or ``"held_out"``."""
    halves: dict[str, list[str]] = declared()["pieces"]
    return next(half for half, names in halves.items() if piece in names)


def holds(field: str, label: str, before: Features, after: Features) -> bool:
    """Whether a label of a field is true of a truth before and after an edit."""
    # Times fit a shift or a scaling to 2 ms. Where `edits.yaml` leaves room, it is read like this:
    # - ``changed`` is neither same nor shifted. Bars that all lose a beat leave times that fit a scaling too, but
    #   no music that is squeezed.
    # - Sections are the same if their boundaries moved by 50 ms at most, or, behind a lead-in, all by less than 0.5 s,
    #   the window of their metric. They end where the music ends.
    # - Intervals are the same if the multiset of patterns of the whole is, or, where sections come in another order or
    #   number, if the patterns inside of sections are: the joints are new then, and a section that is played twice
    #   counts twice.
    # - The melody rests where it is silent for more than 0.14 s; repeated notes are detached by less.
    return label in _TESTS[field](before, after)


def _labels(*, same: bool, shifted: bool = False, scaled: bool = False, changed: bool | None = None) -> set[str]:
    other = not (same or shifted) if changed is None else changed
    return {name for name, true in zip(_LABELS, (same, shifted, scaled, other), strict=True) if true}


def _known(annotation: Annotation | None) -> Annotation:
    """Return an annotation that a truth always has."""
    return cast("Annotation", annotation)


@dataclasses.dataclass(frozen=True)
class _Times:
    """How times after an edit relate to those before."""

    same: bool
    shifted: bool
    scaled: bool


def _relate(before: FloatArray, after: FloatArray) -> _Times:
    if len(before) != len(after):
        return _Times(same=False, shifted=False, scaled=False)
    if not len(before):
        return _Times(same=True, shifted=False, scaled=False)
    moved = after - before
    same = bool(np.abs(moved).max() <= TOLERANCE_SEC)
    shifted = bool(np.ptp(moved) <= _EXACT_SEC)
    speed = float(before @ after / (before @ before))
    return _Times(same, shifted and not same, bool(np.abs(after - speed * before).max() <= _EXACT_SEC) and not same)


def _transposition(before: Sequence[str], after: Sequence[str]) -> int | None:
    """Return by how many semitones 0..11 all chords moved, or None where they did not move together."""
    moved = ([transpose_label(label, semitones) for label in before] for semitones in range(12))
    return next((semitones for semitones, labels in enumerate(moved) if labels == list(after)), None)


def _key(before: Features, after: Features) -> set[str]:
    a, b = _known(before.key), _known(after.key)
    return _labels(same=a == b, shifted=a.mode == b.mode and a.tonic != b.tonic)


def _chords(before: Features, after: Features) -> set[str]:
    a, b = _joined(_known(before.chords)), _joined(_known(after.chords))
    times = _relate(a[0], b[0])
    semitones = _transposition(a[1], b[1])
    return _labels(
        same=times.same and semitones == 0,
        shifted=(times.shifted and semitones == 0) or (times.same and bool(semitones)),
        scaled=times.scaled and semitones == 0,
    )


def _joined(chords: Chords) -> tuple[FloatArray, list[str]]:
    """Return starts (and the last end) and labels of chords, equal neighbours joined."""
    new = [i for i, label in enumerate(chords.labels) if i == 0 or label != chords.labels[i - 1]]
    times = np.append(chords.intervals_sec[new, 0], chords.intervals_sec[-1, 1])
    return times, [chords.labels[i] for i in new]


def _harmony(before: Features, after: Features) -> set[str]:
    semitones = _transposition(_joined(_known(before.chords))[1], _joined(_known(after.chords))[1])
    return _labels(same=semitones == 0, shifted=bool(semitones))


def _beats(before: Features, after: Features) -> set[str]:
    a, b = _known(before.beats).times_sec, _known(after.beats).times_sec
    times = _relate(a, b)
    return _labels(same=_relate(a, b[: len(a)]).same, shifted=times.shifted, scaled=times.scaled)


def _tempo(before: Features, after: Features) -> set[str]:
    same = bool(np.isclose(_known(before.beats).bpm, _known(after.beats).bpm, rtol=1e-6))
    return _labels(same=same, scaled=not same)


def _sections(before: Features, after: Features) -> set[str]:
    """Read the end of the last section as the end of the music, not of the recording."""
    bounds, names = [], []
    for features in (before, after):
        sections, chords = _known(features.segments), _known(features.chords)
        bounds.append(np.append(sections.intervals_sec[1:, 0], chords.intervals_sec[-1, 1]))
        labels = sections.labels
        names.append([labels.index(label) for label in labels])  # up to renaming
    times = _relate(*bounds)
    lead_in = times.shifted and float(np.abs(bounds[1] - bounds[0]).max()) < SECTION_TOLERANCE_SEC
    equal = names[0] == names[1]
    return _labels(same=equal and (times.same or lead_in), scaled=equal and times.scaled)


def _melody(before: Features, after: Features) -> set[str]:
    a, b = _known(before.melody), _known(after.melody)
    times = _relate(a.intervals_sec.ravel(), b.intervals_sec.ravel())
    steps = b.pitches - a.pitches if len(a.pitches) == len(b.pitches) else np.array([np.nan])
    level = bool(np.all(steps == steps[0]))
    return _labels(
        same=times.same and level and steps[0] == 0,
        shifted=level and ((times.same and steps[0] != 0) or (times.shifted and steps[0] == 0)),
        scaled=times.scaled and level and steps[0] == 0,
    )


def _intervals(before: Features, after: Features) -> set[str]:
    a, b = _patterns(_known(before.melody)), _patterns(_known(after.melody))
    form_moved = _known(before.segments).labels != _known(after.segments).labels
    inside = set(_by_section(before)) == set(_by_section(after))
    return _labels(same=a == b or (form_moved and inside), changed=a != b)


def _patterns(melody: Melody, *, first_sec: float = 0.0, last_sec: float = np.inf) -> Counter[tuple[float, ...]]:
    """Count the successions of three intervals among the notes that start in a stretch of time."""
    onsets = melody.intervals_sec[:, 0]
    steps = np.diff(melody.pitches[(onsets >= first_sec - _EXACT_SEC) & (onsets < last_sec - _EXACT_SEC)])
    return Counter(tuple(steps[i : i + _MOTIF]) for i in range(len(steps) - _MOTIF + 1))


def _by_section(features: Features) -> Counter[tuple[float, ...]]:
    counts: Counter[tuple[float, ...]] = Counter()
    for first, last in _known(features.segments).intervals_sec:
        counts += _patterns(_known(features.melody), first_sec=first, last_sec=last)
    return counts


def _voicing(before: Features, after: Features) -> set[str]:
    times = _relate(_voiced(_known(before.melody)), _voiced(_known(after.melody)))
    return _labels(same=times.same, shifted=times.shifted, scaled=times.scaled)


def _voiced(melody: Melody) -> FloatArray:
    """Return where the melody begins and ends to sound; gaps of `REST_SEC` and less are ignored."""
    starts, ends = melody.intervals_sec.T
    apart = starts[1:] - ends[:-1] > REST_SEC
    if not len(starts):
        return np.zeros(0)
    return np.sort(np.concatenate([starts[:1], ends[:-1][apart], starts[1:][apart], ends[-1:]]))


_TESTS = {
    "key": _key, "chords": _chords, "harmony": _harmony, "beats": _beats, "tempo": _tempo,
    "sections": _sections, "melody": _melody, "intervals": _intervals, "voicing": _voicing,
}  # fmt: skip
