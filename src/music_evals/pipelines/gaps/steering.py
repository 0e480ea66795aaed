"""What a user may ask of a gap besides that it is filled: notes that stay where they are, and a sketch.

Locked notes are for a `protocols.GapInpainter`: their steps are shown to it and stay as they are. A sketch is for a
model whose `inpaint` takes ``sketches``, such as SketchNet: the rhythm or the pitches of measures. SketchNet obeys it
unless switched off; `followed` counts how much of a sketch is in a middle, of whatever model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from music_evals.annotations import HOLD, MUSIB_LAYOUT, REST, Tokens
from music_evals.deprecation import warn_renamed
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.protocols import Inpainter
from music_evals.symbolic import noteseq
from music_evals.symbolic.encodings import factorized

SKETCHES: Final = ("rhythm", "contour")
"""What can be sketched: onsets and lengths, or pitches in their order."""

_ONSET: Final = 1  # of `symbolic.encodings.factorized`

Entries = tuple[tuple[int, ...] | None, ...]


class Followed(NamedTuple):
    """How much of a sketch is in a middle."""

    matched: int  # of a rhythm, onsets that are where they were drawn; of a contour, pitches that have their place
    sketched: int  # onsets or pitches of the sketch
    others: int  # onsets elsewhere; pitches beyond those that were drawn

    @property
    def kept(self) -> int:
        """Old name of `matched`."""
        warn_renamed("Followed.kept", "matched")
        return self.matched

    @property
    def drawn(self) -> int:
        """Old name of `sketched`."""
        warn_renamed("Followed.drawn", "sketched")
        return self.sketched


class SketchInpainter(Inpainter, Protocol):
    """An inpainter that can be given sketches."""

    def inpaint(self, contexts: Tokens, *, rng: np.random.Generator, sketches: Any = None) -> Tokens:
        """Return middles as `protocols.Inpainter`, along the sketches."""
        ...


class Sketched:
    """An inpainter with a sketch that all its middles follow; no model says how likely a middle is for a sketch."""

    def __init__(self, inpainter: SketchInpainter, sketch: Any) -> None:
        self.inpainter, self.sketch = inpainter, sketch
        self.name = inpainter.name
        self.deterministic = inpainter.deterministic
        self.sees_reference = inpainter.sees_reference

    def inpaint(self, contexts: Tokens, *, rng: np.random.Generator) -> Tokens:
        """Return middles, shape (n, 96), values 0..129, for contexts of shape (n, 384)."""
        return self.inpainter.inpaint(contexts, rng=rng, sketches=self.sketch)


def sketched(inpainter: Inpainter, gap: Tokens, kind: str) -> Sketched:
    """Hold a model to what was drawn in a gap."""
    if not hasattr(inpainter, "sketch_class"):
        raise InvalidInputError(f"{inpainter.name} takes no sketch; sketchnet does")
    entries = drawn_sketch(gap, kind)
    sketch = inpainter.sketch_class(**{"rhythms" if kind == "rhythm" else "pitches": entries})
    return Sketched(cast("SketchInpainter", inpainter), sketch)


def hide_gap(tokens: Tokens, gap: slice, keep: Iterable[Sequence[int]] = ()) -> tuple[Tokens, npt.NDArray[np.bool_]]:
    """Put locked notes into a gap, and say which of its steps are left to fill."""
    shown, hidden = tokens.copy(), np.zeros(len(tokens), dtype=np.bool_)
    hidden[gap] = True
    for onset, duration, pitch in sorted(map(tuple, keep)):
        end = onset + duration
        if not gap.start <= onset < end <= gap.stop:
            raise InvalidInputError(
                f"pitch {pitch} at steps {onset} to {end} is to be kept, and does not lie in the gap, steps "
                f"{gap.start} to {gap.stop}; lock notes of the gap"
            )
        if not hidden[onset:end].all():
            raise InvalidInputError(f"two notes that are to be kept sound at once, at step {onset}; lock one of them")
        shown[onset:end], shown[onset], hidden[onset:end] = HOLD, pitch, False
    return shown, hidden


def end_locked(filled: Tokens, hidden: npt.NDArray[np.bool_], gap: slice) -> Tokens:
    """Let locked notes end where they end: holds that a model wrote behind one become rests."""
    ended = filled.copy()
    behind = False  # whether what comes before is a locked note, or a rest that was a hold behind it
    for step in range(gap.start, gap.stop):
        behind = not hidden[step] or (behind and ended[step] == HOLD)
        if behind and hidden[step]:
            ended[step] = REST
    return ended


def drawn_sketch(middle: Tokens, kind: str) -> Entries:
    """Take a sketch from notes that were drawn: one entry a measure."""
    if kind not in SKETCHES:
        raise UnknownNameError("sketch", kind, SKETCHES)
    parts = factorized.encode(noteseq.encode(noteseq.decode(middle), len(middle)))
    if kind == "contour":
        entries: Entries = tuple(tuple(row[:n].tolist()) or None for row, n in zip(parts.px, parts.len_x, strict=True))
    else:
        entries = tuple(
            tuple(steps.tolist()) if (measure != REST).any() else None
            for steps, measure in zip(parts.rx, parts.gd, strict=True)
        )
    if not any(entries):
        raise InvalidInputError(f"nothing is drawn in the gap: draw the {kind} there that is to be followed")
    return entries


def followed(entries: Entries, kind: str, middle: Tokens) -> Followed:
    """Count how much of a sketch is in a middle."""
    size = MUSIB_LAYOUT.steps_per_measure
    matched = sketched = others = 0
    for entry, measure in zip(entries, np.reshape(middle, (-1, size)), strict=True):
        if entry is None:
            continue
        if kind == "rhythm":
            wanted = np.array(entry) == _ONSET
            matched += int((wanted & (measure < HOLD)).sum())
            sketched += int(wanted.sum())
            others += int((~wanted & (measure < HOLD)).sum())
        else:
            pitches = measure[measure < HOLD].tolist()
            matched += sum(a == b for a, b in zip(entry, pitches, strict=False))
            sketched += len(entry)
            others += max(len(pitches) - len(entry), 0)
    return Followed(matched, sketched, others)
