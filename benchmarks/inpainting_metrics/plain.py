"""The inpainting metrics as a reader of their definitions would write them: one context at a time, note by note.

This is the yardstick of the benchmark and the oracle of the tests. It shares no code with the library, and is written
to be compared with the definitions by eye.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

HOLD, REST = 128, 129
BAR = 24
NAN = float("nan")

Tokens = Sequence[int]
Note = tuple[int, int, int]


def notes(tokens: Tokens) -> list[Note]:
    """Return the notes as (position, pitch, duration)."""
    found = []
    for position, token in enumerate(tokens):
        if token < HOLD:
            duration = 1
            while position + duration < len(tokens) and tokens[position + duration] == HOLD:
                duration += 1
            found.append((position, token, duration))
    return found


def bars(tokens: Tokens) -> list[Tokens]:
    """Cut tokens into bars."""
    return [tokens[start : start + BAR] for start in range(0, len(tokens), BAR)]


def f1(reference: set, estimate: set, *, empty: float) -> float:
    """Return the F1 score of two sets."""
    if not reference and not estimate:
        return empty
    return 2 * len(reference & estimate) / (len(reference) + len(estimate))


def item_scores(reference: Tokens, estimate: Tokens, *, empty: float = 1.0) -> dict[str, float]:
    """Return the four note metrics; `empty` is the F1 score of two middles without notes (``paper``: NaN)."""
    true, given = notes(reference), notes(estimate)
    true_by_position = {position: (pitch, duration) for position, pitch, duration in true}
    given_by_position = {position: (pitch, duration) for position, pitch, duration in given}
    shared = [position for position in true_by_position if position in given_by_position]
    pairs = [(true_by_position[position], given_by_position[position]) for position in shared]
    return {
        "position_score": f1(set(true_by_position), set(given_by_position), empty=empty),
        "pitch_accuracy": sum(a[0] == b[0] for a, b in pairs) / len(pairs) if pairs else NAN,
        "rhythm_accuracy": sum(a[1] == b[1] for a, b in pairs) / len(pairs) if pairs else NAN,
        "note_f1": f1({note[:2] for note in true}, {note[:2] for note in given}, empty=empty),
    }


def silence(middle: Tokens) -> float:
    """Return the share of steps that rest."""
    return sum(token == REST for token in middle) / len(middle)


def entropy(bar: Tokens) -> float:
    """Return the entropy of the pitch classes of a bar's onsets, in bits."""
    counts = Counter(pitch % 12 for _, pitch, _ in notes(bar))
    total = sum(counts.values())
    return sum(-count / total * math.log2(count / total) for count in counts.values())


def entropy_difference(past: Tokens, middle: Tokens, future: Tokens, *, scale: float = math.log2(12)) -> float:
    """Return the mean distance of the entropies of all pairs of bars, divided by `scale` (``paper``: 1)."""
    ours = [entropy(bar) for bar in bars(middle)]
    theirs = [entropy(bar) for bar in bars(past) + bars(future)]
    distances = [abs(a - b) for a in ours for b in theirs]
    return sum(distances) / len(distances) / scale


def groove(past: Tokens, middle: Tokens, future: Tokens) -> float:
    """Return 1 - the mean share of differing onset steps over all pairs of bars."""
    ours = [[token < HOLD for token in bar] for bar in bars(middle)]
    theirs = [[token < HOLD for token in bar] for bar in bars(past) + bars(future)]
    differing = [sum(a != b for a, b in zip(one, other, strict=True)) for one in ours for other in theirs]
    return 1 - sum(differing) / (len(differing) * BAR)


def divergence(reference: Sequence[float], estimate: Sequence[float]) -> float:
    """Return the Jensen-Shannon divergence in nats of two sets of values, in 100 bins on [0, 1]."""
    # rounding must not keep a value below an edge
    p, q = (Counter(min(int(value * 100 + 1e-7), 99) for value in values) for values in (reference, estimate))
    total = 0.0
    for position in p.keys() | q.keys():
        a, b = p[position] / len(reference), q[position] / len(estimate)
        for mass in (a, b):
            if mass:
                total += mass * math.log(2 * mass / (a + b)) / 2
    return total


def evaluate(contexts: Sequence[Tokens], middles: Sequence[Tokens]) -> tuple[list[dict[str, float]], dict[str, float]]:
    """Return the scores of each item and the divergences of the set, variant ``corrected``."""
    scores = []
    features: dict[str, tuple[list[float], list[float]]] = {
        name: ([], []) for name in ("silence_divergence", "pitch_class_divergence", "groove_divergence")
    }
    for context, middle in zip(contexts, middles, strict=True):
        past, true, future = context[:144], context[144:240], context[240:]
        scores.append(item_scores(true, middle))
        for side, filled in enumerate((true, middle)):
            features["silence_divergence"][side].append(silence(filled))
            features["pitch_class_divergence"][side].append(entropy_difference(past, filled, future))
            features["groove_divergence"][side].append(groove(past, filled, future))
    return scores, {name: divergence(*values) for name, values in features.items()}
