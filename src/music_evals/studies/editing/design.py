"""Who edits what in an editing test, and in which order.

Each editor gets pieces that are all different, as many of one model as of the other where their number is even, and in
another order; each sample gets as many editors as any other, give or take one. So nobody edits two versions of a piece,
and what an editor learns or tires of falls on both models alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from music_evals.errors import InvalidInputError

__all__ = ["assign_editors"]


def assign_editors(
    samples: Sequence[Mapping[str, Any]], n_editors: int, per_editor: int, *, seed: int
) -> list[list[str]]:
    """Give samples to editors.

    Parameters
    ----------
    samples
        Rows with ``sample_id``, ``piece_id``, ``style`` and ``role``; each piece and style has one proposed and one
        baseline sample.
    n_editors
        At least 1.
    per_editor
        Samples of each editor, at most as many as there are pieces.
    seed
        Draws the order of pieces and of each editor.

    Returns
    -------
    list of list of str
        For each editor the samples in order.

    Raises
    ------
    InvalidInputError
        Fewer pieces than samples an editor, or too few editors for every sample to be edited.

    Examples
    --------
    >>> rows = [{"sample_id": f"{p}{r}", "piece_id": p, "style": "jazz", "role": r} for p in "ab" for r in ("p", "b")]
    >>> plans = assign_editors(rows, 4, 2, seed=0)
    >>> sorted(sample for plan in plans for sample in plan)
    ['ab', 'ab', 'ap', 'ap', 'bb', 'bb', 'bp', 'bp']

    """
    rng = np.random.default_rng(seed)
    pieces = list(dict.fromkeys(row["piece_id"] for row in samples))
    if n_editors < 1 or not 1 <= per_editor <= len(pieces):
        raise InvalidInputError(
            f"{per_editor} samples for each of {n_editors} editors: an editor gets each piece once at most, and there "
            f"are {len(pieces)} pieces"
        )
    if n_editors * per_editor < len(samples):
        raise InvalidInputError(
            f"{n_editors} editors with {per_editor} samples each are too few for {len(samples)} samples; "
            f"{-(-len(samples) // per_editor)} editors are enough"
        )
    pieces = [pieces[index] for index in rng.permutation(len(pieces))]
    versions = {piece: _versions(samples, piece) for piece in pieces}
    counts = dict.fromkeys(pieces, 0)
    plans = []
    for editor in range(n_editors):
        # the pieces that were given the least, and of equals those that come next in the round
        turn = {piece: (place - editor * per_editor) % len(pieces) for place, piece in enumerate(pieces)}
        chosen = sorted(sorted(pieces, key=lambda piece: (counts[piece], turn[piece]))[:per_editor], key=pieces.index)
        plan = []
        for piece in chosen:
            # the versions of a piece go round, each piece from another start, so that neighbours differ in their role
            round_ = versions[piece]
            plan.append(round_[(counts[piece] + pieces.index(piece)) % len(round_)])
            counts[piece] += 1
        shift = editor % len(plan)
        order = plan[shift:] + plan[:shift]
        plans.append(order if rng.random() < 0.5 else order[::-1])
    return plans


def _versions(samples: Sequence[Mapping[str, Any]], piece: str) -> list[str]:
    """Return the samples of a piece, roles by turns."""
    mine = [row for row in samples if row["piece_id"] == piece]
    roles = list(dict.fromkeys(row["role"] for row in samples))
    by_role = {role: [row["sample_id"] for row in mine if row["role"] == role] for role in roles}
    longest = max(map(len, by_role.values()))
    return [ids[place] for place in range(longest) for ids in by_role.values() if place < len(ids)]
