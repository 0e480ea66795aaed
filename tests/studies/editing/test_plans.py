"""Who edits what: as often, in as many orders, and never a piece twice."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.errors import InvalidInputError
from music_evals.studies.editing.study import assign_editors


def samples(n_pieces: int, n_styles: int = 2) -> list[dict[str, str]]:
    return [
        {"sample_id": f"{piece}-{style}-{role}", "piece_id": str(piece), "style": str(style), "role": role}
        for piece, style, role in product(range(n_pieces), range(n_styles), ("proposed", "baseline"))
    ]


def roles(plan: list[str]) -> Counter[str]:
    return Counter(sample.rsplit("-", 1)[1] for sample in plan)


def test_the_paper_s_test_is_balanced() -> None:
    plans = assign_editors(samples(6), 12, 6, seed=3)
    assert set(Counter(sum(plans, [])).values()) == {3}  # noqa: RUF017
    for plan in plans:
        assert len({sample.split("-")[0] for sample in plan}) == 6
        assert roles(plan) == {"proposed": 3, "baseline": 3}
    # neither model comes first more often than chance lets it
    first = Counter(plan[0].rsplit("-", 1)[1] for plan in plans)
    assert min(first["proposed"], first["baseline"]) >= 3


@given(st.integers(1, 7), st.integers(1, 2), st.integers(1, 30), st.integers(1, 7), st.integers(0, 99))
def test_samples_are_edited_equally_often(
    n_pieces: int, n_styles: int, n_editors: int, per_editor: int, seed: int
) -> None:
    rows = samples(n_pieces, n_styles)
    if per_editor > n_pieces or n_editors * per_editor < len(rows):
        with pytest.raises(InvalidInputError, match="editors"):
            assign_editors(rows, n_editors, per_editor, seed=seed)
        return
    plans = assign_editors(rows, n_editors, per_editor, seed=seed)
    counts = Counter(sample for plan in plans for sample in plan)
    assert set(counts) == {row["sample_id"] for row in rows}
    assert max(counts.values()) - min(counts.values()) <= 1
    for plan in plans:
        assert len({sample.split("-")[0] for sample in plan}) == len(plan) == per_editor
    assert assign_editors(rows, n_editors, per_editor, seed=seed) == plans


@given(st.integers(1, 3).map(lambda half: 2 * half), st.integers(4, 24), st.integers(0, 99))
def test_where_all_pieces_are_edited_each_editor_has_both_models_alike(
    n_pieces: int, n_editors: int, seed: int
) -> None:
    for plan in assign_editors(samples(n_pieces), n_editors, n_pieces, seed=seed):
        assert roles(plan)["proposed"] == n_pieces // 2
