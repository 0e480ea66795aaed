"""What an edit changed, in plain words: sentences that are read off the features of both sides.

No recording is analysed here: each sentence restates annotations, and is as reliable as the extractor behind them.
"""

from __future__ import annotations

import collections
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import NO_CHORD, Beats, Chords, F0Track, Features, Key, Melody, Segments
from music_evals.metrics.rhythm import TOLERANCE_SEC
from music_evals.metrics.structure import WINDOW_SEC
from music_evals.ui.widgets.moves import UNMOVED, Move, find_move, kept_notes

SAME_TEMPO_BPM: Final = 0.5  # tempi that differ by less are named as equal
SAME_LENGTH_SEC: Final = 0.05
SAME_CHORDS_SEC: Final = 0.1  # chords that differ for less in all are named as equal: a frame at a change of chord
WORTH_MOVING: Final = 0.1  # an offset of the beats is reported where it brings back this share of them, at least
SHOWN_SECTIONS: Final = 12  # longer forms are counted and not spelt out
OCTAVE_TOLERANCE: Final = 0.1  # octaves within which a tempo counts as doubled or halved, 7 %
LEAST_SHARE, LARGEST_PART = 0.005, 0.995  # what rounds to 0 % is nothing, and no part is reported as 100 %

TONICS: Final = ("C", "C#", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B")
INTERVALS: Final = (
    "a unison", "a semitone", "a whole tone", "a minor third", "a major third", "a fourth", "a tritone", "a fifth",
    "a minor sixth", "a major sixth", "a minor seventh", "a major seventh", "an octave",
)  # fmt: skip

Kind = Literal["same", "changed", "undefined"]
FloatArray = npt.NDArray[np.float64]


class Finding(NamedTuple):
    """One sentence on one facet."""

    facet: str  # what it is on: ``"length"``, ``"key"``, ``"tempo"``, ``"beats"`` and so on
    kind: Kind  # whether the two sides agree, differ, or cannot be compared
    text: str  # without a full stop
    share: float | None = None
    """How much of the original's the edit has, 0..1; None where that is not a matter of more or less."""


def interval_name(semitones: int) -> str:
    """Return the name of an interval of at most an octave, whichever way it goes."""
    return INTERVALS[abs(semitones)]


def key_name(key: Key) -> str:
    """Return a key in words."""
    return f"{TONICS[key.tonic]} {key.mode}"


def chord_name(label: str) -> str:
    """Return a chord in words; a label of Harte's syntax that is neither major nor minor stays as it is."""
    if label == NO_CHORD:
        return "no chord"
    root, _, quality = label.partition(":")
    words = {"maj": "major", "min": "minor"}
    return f"{root} {words[quality]}" if quality in words else label


def findings(original: Features, edit: Features) -> tuple[Finding, ...]:
    """Say what differs between the features of an original and of its edit."""
    differences = [_length(original.duration_sec, edit.duration_sec)]
    about = _About(original.duration_sec, find_move(original, edit))
    for feature, facet, describe in _DESCRIBED:
        sides = getattr(original, feature), getattr(edit, feature)
        reasons = [
            f"{title}: {features.undefined[feature]}"
            for title, features in (("original", original), ("edit", edit))
            if feature in features.undefined
        ]
        if reasons:
            differences.append(Finding(facet, "undefined", f"{facet} cannot be compared ({'; '.join(reasons)})"))
        elif all(side is not None for side in sides):
            differences.append(describe(*sides, about))
    return tuple(differences)


def preserved_sentence(findings: Sequence[Finding]) -> str:
    """Say in one sentence how much of the original the edit preserved."""
    groups: dict[str, list[str]] = {"in full": [], "in part": [], "not preserved": [], "not comparable": []}
    for finding in findings:
        share = finding.share or 0.0
        if finding.kind == "undefined":
            groups["not comparable"].append(finding.facet)
        elif finding.kind == "same":
            groups["in full"].append(finding.facet)
        elif share >= LEAST_SHARE:
            how_much = f"{100 * share:.0f} %" if share < LARGEST_PART else "all found again, with changes"
            groups["in part"].append(f"{finding.facet} ({how_much})")
        else:
            groups["not preserved"].append(finding.facet)
    parts = [f"{words}: {', '.join(facets)}" for words, facets in groups.items() if facets]
    sentence = "; ".join(parts)
    return f"Preserved {sentence}." if groups["in full"] or groups["in part"] else f"{sentence.capitalize()}."


class _About(NamedTuple):
    """What the comparison of one feature must know of the pair."""

    end_sec: float  # length of the original
    move: Move  # what was done to all of the edit


def _length(original_sec: float, edit_sec: float) -> Finding:
    change = edit_sec - original_sec
    if abs(change) < SAME_LENGTH_SEC:
        return Finding("length", "same", f"both last {original_sec:.1f} s")
    word = "longer" if change > 0 else "shorter"
    return Finding("length", "changed", f"{abs(change):.1f} s {word} ({original_sec:.1f} to {edit_sec:.1f} s)")


def _key(original: Key, edit: Key, _about: _About) -> Finding:
    first, second = key_name(original), key_name(edit)
    if original == edit:
        return Finding("key", "same", f"key unchanged ({first})")
    steps = (edit.tonic - original.tonic) % 12
    if original.mode == edit.mode:
        return Finding("key", "changed", f"key moved {_moved(steps)} ({first} to {second})")
    if not steps:
        return Finding("key", "changed", f"mode changed from {original.mode} to {edit.mode} ({first} to {second})")
    if steps == (9 if original.mode == "major" else 3):
        return Finding("key", "changed", f"key moved to the relative {edit.mode} ({first} to {second}; the same scale)")
    return Finding("key", "changed", f"key changed from {first} to {second}")


def _moved(steps: int) -> str:
    """Return 1..11 semitones upwards as the way that is named first on the circle of fifths, or the shorter one."""
    if steps == 6:
        return "by a tritone"
    return f"up {interval_name(steps)}" if steps <= 7 else f"down {interval_name(12 - steps)}"


def _tempo(original: Beats, edit: Beats, _about: _About) -> Finding:
    missing = [title for title, side in (("original", original), ("edit", edit)) if np.isnan(side.bpm)]
    if missing:
        return Finding("tempo", "undefined", f"tempo cannot be compared ({' and '.join(missing)} without a tempo)")
    change = edit.bpm - original.bpm
    reported = f"{original.bpm:.0f} to {edit.bpm:.0f} BPM"
    if abs(change) < SAME_TEMPO_BPM:
        return Finding("tempo", "same", f"tempo unchanged ({original.bpm:.0f} BPM)")
    ratio = float(np.log2(edit.bpm / original.bpm))
    octaves = round(ratio)
    if octaves and abs(ratio - octaves) < OCTAVE_TOLERANCE:
        factor = f"{2 ** abs(octaves)} times as {'fast' if octaves > 0 else 'slow'}"
        doubt = "a beat tracker may count halves or doubles"
        return Finding("tempo", "changed", f"beats counted about {factor} ({reported}; {doubt})")
    amount = f"{abs(change):.0f}" if abs(change) >= 1.5 else f"{abs(change):.1f}"
    return Finding("tempo", "changed", f"tempo {amount} BPM {'faster' if change > 0 else 'slower'} ({reported})")


def _beats(original: Beats, edit: Beats, about: _About) -> Finding:
    from music_evals.metrics.rhythm import beat_offset_sec

    first = original.times_sec
    second = edit.times_sec[edit.times_sec < about.end_sec]
    if not len(first) or not len(second):
        missing = " and ".join(title for title, side in (("original", first), ("edit", second)) if not len(side))
        return Finding("beats", "undefined", f"beats cannot be compared ({missing}: no beats)")
    hits = _hits(first, second, TOLERANCE_SEC)
    text = f"{hits} of {len(first)} beats found again within 70 ms"
    if hits == len(first):
        more = len(second) - hits
        text += f"; the edit has {more} more" if more else ""
        return Finding("beats", "changed" if more else "same", text, hits / len(first))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an offset may be undefined
        offset = beat_offset_sec(original, Beats(second))
    moved = 0 if np.isnan(offset) else _hits(first, second - offset, TOLERANCE_SEC)
    if moved - hits >= WORTH_MOVING * len(first):
        text += f"; {moved} once the edit is moved by {abs(offset):.2f} s, it comes {'late' if offset > 0 else 'early'}"
    return Finding("beats", "changed", text, hits / len(first))


def _hits(original: FloatArray, edit: FloatArray, tolerance_sec: float) -> int:
    """Return the largest number of pairs within the tolerance, each time in one pair at most."""
    from mir_eval.util import match_events

    return len(match_events(original, edit, tolerance_sec))


def _chords(original: Chords, edit: Chords, _about: _About) -> Finding:
    spent: collections.Counter[tuple[str, str]] = collections.Counter()
    for (start, end), label in zip(original.intervals_sec, original.labels, strict=True):
        for (other_start, other_end), other in zip(edit.intervals_sec, edit.labels, strict=True):
            shared = min(end, other_end) - max(start, other_start)
            if shared > 0:
                spent[label, other] += shared
    total = sum(spent.values())
    if not total:
        return Finding("chords", "undefined", "chords cannot be compared (no time at which both sides have one)")
    changes = {pair: time for pair, time in spent.items() if pair[0] != pair[1]}
    changed = sum(changes.values())
    text = f"chords agree for {total - changed:.1f} of {total:.1f} s"
    if changed < SAME_CHORDS_SEC:
        return Finding("chords", "same", text)
    (was, became), time = max(changes.items(), key=lambda item: item[1])
    text += f"; most often {chord_name(was)} became {chord_name(became)} ({time:.1f} s)"
    return Finding("chords", "changed", text, 1 - changed / total)


def _sections(original: Segments, edit: Segments, _about: _About) -> Finding:
    first, second = original.intervals_sec[1:, 0], edit.intervals_sec[1:, 0]
    hits = _hits(first, second, WINDOW_SEC) if len(first) and len(second) else 0
    forms = _form(original.labels), _form(edit.labels)
    if len(first):
        text = f"{hits} of {len(first)} section boundaries found again within 0.5 s"
    else:
        text = "the original has no section boundary"
    same = hits == len(first) == len(second) and forms[0] == forms[1]
    share = hits / len(first) if len(first) else None
    if max(map(len, forms)) > SHOWN_SECTIONS:
        form = f"{len(forms[0])} sections in the original, {len(forms[1])} in the edit"
    else:
        letters = [" ".join(each) for each in forms]
        form = f"form {letters[0]} in both" if forms[0] == forms[1] else f"form {letters[0]} became {letters[1]}"
    return Finding("sections", "same" if same else "changed", f"{text}; {form}", share)


def _form(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the form in letters by the order in which labels appear, so that names of labels do not matter."""
    order = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    return tuple(chr(ord("A") + order[label]) if order[label] < 26 else f"A{order[label]}" for label in labels)


def _melody(original: Melody, edit: Melody, about: _About) -> Finding:
    n = len(original.pitches)
    if not n:
        return Finding("melody", "undefined", "melody cannot be compared (original: no notes)")
    n_kept = kept_notes(original, edit)
    text = f"{n_kept} of {n} melody notes found again, pitch and place"
    if n_kept == n:
        more = max(len(edit.pitches) - n_kept, 0)
        text += f"; the edit has {more} more" if more else ""
        return Finding("melody", "changed" if more else "same", text, 1.0)
    if about.move != UNMOVED:
        n_kept = kept_notes(original, edit, about.move)
        text = f"{move_text(about.move)}: {n_kept} of {n} notes found again there"
    return Finding("melody", "changed", text, n_kept / n)


def move_text(move: Move) -> str:
    """Say how an edit was moved as a whole."""
    up = "up" if move.semitones > 0 else "down"
    way = f"melody moved {up} {interval_name(move.semitones)}" if move.semitones else "melody kept"
    return way if move.stretch == 1.0 else f"{way}, at the edit's tempo"


def _voicing(original: F0Track, edit: F0Track, _about: _About) -> Finding:
    if not len(original.times_sec) or not len(edit.times_sec):
        return Finding("voicing", "undefined", "voicing cannot be compared (a side has no frames)")
    first, second = (round(100 * float(side.voiced.mean())) for side in (original, edit))
    text = f"a melody sounds for {first} % of the original and {second} % of the edit"
    share = min(first, second) / max(first, second, 1)
    return Finding("voicing", "same" if first == second else "changed", text, share)


_DESCRIBED: Final[tuple[tuple[str, str, Callable[[Any, Any, _About], Finding]], ...]] = (
    ("key", "key", _key),
    ("beats", "tempo", _tempo),
    ("beats", "beats", _beats),
    ("chords", "chords", _chords),
    ("segments", "sections", _sections),
    ("melody", "melody", _melody),
    ("f0", "voicing", _voicing),
)
"""Feature, facet, and how the two sides are put into words."""
