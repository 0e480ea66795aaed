"""Where a metric begins and ends: originals against themselves, and against originals of other groups.

Both are made of the originals alone, so that they say nothing of any system. Which originals are taken depends on what
they hold and on the seed, not on their order. Unrelated originals differ in key and tempo as far as the corpus allows:
music that shares them is partly alike, and a row of it would not say what chance gives. What is known of an original
is what the run itself extracted from it, so that nothing is extracted twice.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from music_evals.benchmark.tasks.preservation.pairs import CEILING, REENCODED, UNRELATED, Pair

MOST_PAIRS = 50
"""Pairs of each control: enough for a mean, few enough to cost little."""

TEMPO_TOLERANCE = 0.04
"""Tempi that differ by no more are one: Gouyon et al., IEEE Trans. Audio Speech Lang. Process. 14(5), 2006."""

# Prices of a pair of unrelated music. Each is more than all cheaper ones of fifty pairs together, so that the choice is
# made by the first, then the second, then the third.
_FORBIDDEN, _SHARED, _ALONG, _RANDOM = 1e7, 1e4, 1.0, 1e-3


class Traits(NamedTuple):
    """Music, key and tempo of an original; None for what a run did not extract."""

    music: str | None = None
    """Hash of the music, whatever its file."""
    key: tuple[int, str] | None = None
    """Pitch class of the tonic, and mode."""
    bpm: float | None = None


NO_TRAITS = Traits()


def traits_of(outline: Mapping[str, Any] | None) -> Traits:
    """Return the traits of an original from its outline in the records."""
    if outline is None:
        return NO_TRAITS
    key, beats = outline.get("key"), outline.get("beats") or ()
    gap_sec = float(np.median(np.diff(beats))) if len(beats) > 1 else 0.0
    return Traits(outline.get("music"), tuple(key) if key else None, 60 / gap_sec if gap_sec > 0 else None)


def shares_key(first: Traits, second: Traits) -> bool | None:
    """Tell whether two originals have one key; a relative key is the same, as in `circle_of_fifths_distance`."""
    if first.key is None or second.key is None:
        return None
    major, other = ((tonic + 3 * (mode == "minor")) % 12 for tonic, mode in (first.key, second.key))
    return major == other


def shares_tempo(first: Traits, second: Traits) -> bool | None:
    """Tell whether two originals have one tempo, or one that is 2, 4, ... times the other."""
    # Octaves are forgiven: extractors often take one tempo for its double, which makes no other music of it.
    if first.bpm is None or second.bpm is None:
        return None
    octaves = math.log2(first.bpm) - math.log2(second.bpm)
    return abs(octaves - round(octaves)) <= math.log2(1 + TEMPO_TOLERANCE)


def make_controls(
    pairs: Sequence[Pair], find_traits: Callable[[str], Traits] = lambda _: NO_TRAITS, *, seed: int = 0
) -> list[Pair]:
    """Return each original against itself, re-encoded; then originals against those of another group.

    `find_traits` gives the traits of an original by the hash of its file. Where there are more than `MOST_PAIRS`
    originals, the seed draws them; it also draws who meets whom among equally good choices.
    """
    originals: dict[str, Pair] = {}
    # a pair of which something was asked comes before others: the controls are asked for the same
    for pair in sorted(pairs, key=lambda pair: (not pair.targets, pair.item, pair.system)):
        originals.setdefault(pair.reference.content, pair)
    chosen = sorted(originals.values(), key=lambda pair: _draw(pair.reference.content, seed))[:MOST_PAIRS]
    same = [
        dataclasses.replace(pair, system=CEILING, estimate=pair.reference, treatment=REENCODED)
        for pair in sorted(chosen, key=lambda pair: pair.item)
    ]
    unrelated = [
        dataclasses.replace(first, system=UNRELATED, estimate=second.reference)
        for first, second in _strangers(chosen, [find_traits(pair.reference.content) for pair in chosen], seed)
    ]
    # the first pair of each item: two originals may be called alike
    distinct = ({pair.item: pair for pair in reversed(pairs)}.values() for pairs in (same, unrelated))
    return [pair for pairs in distinct for pair in reversed(pairs)]


def _strangers(originals: Sequence[Pair], traits: Sequence[Traits], seed: int) -> list[tuple[Pair, Pair]]:
    """Pair originals of different groups, each once on either side; an original without a partner is left out."""
    # An assignment of least cost. The originals stand in a circle as they were drawn, and the next along is the
    # cheapest: so rows are rarely turned round, and two pairs rarely share both originals. What is drawn last makes the
    # choice the only one, whatever the solver.
    from scipy.optimize import linear_sum_assignment

    cost = np.zeros((len(originals), len(originals)))
    for row, first in enumerate(originals):
        for column, second in enumerate(originals):
            along = (column - row - 1) % len(originals)
            chance = int(_draw(f"{first.reference.content}\0{second.reference.content}", seed)[:12], 16) / 16**12
            own, theirs = traits[row], traits[column]
            # how much they share, 0 to 2; what is not known counts for half
            known = (shares_key(own, theirs), shares_tempo(own, theirs))
            shared = sum(0.5 if is_shared is None else float(is_shared) for is_shared in known)
            cost[row, column] = _ALONG * along + _RANDOM * chance + _SHARED * shared
            # the same music may stand in two files, with other tags
            same_music = own.music is not None and own.music == theirs.music
            if first.group == second.group or first.modality != second.modality or same_music:
                cost[row, column] = _FORBIDDEN
    rows, columns = linear_sum_assignment(cost)
    return [
        (originals[row], originals[column])
        for row, column in zip(rows, columns, strict=True)
        if cost[row, column] < _FORBIDDEN
    ]


def _draw(content: str, seed: int) -> str:
    return hashlib.sha256(f"{seed}\0{content}".encode()).hexdigest()
