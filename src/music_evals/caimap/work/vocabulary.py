"""The lexica of a study: kept with their source and licence, and read while somebody types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from music_evals.caimap import lexica
from music_evals.caimap.storage.tables import SettingRow
from music_evals.caimap.work.desk import Desk

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

__all__ = ["keep_lexica", "lexica_of", "terms_of"]


def keep_lexica(desk: Desk, who: int, group: str, built: Mapping[str, lexica.Lexicon]) -> None:
    """Keep lexica of dimensions of a group, in place of those they had; all of them or none.

    Raises
    ------
    ForbiddenError
        The person is no administrator.
    UnknownNameError
        A group or a dimension that has no lexicon.

    """
    for dimension in built:
        lexica.check_dimension(group, dimension)
    with desk.writing(who, "manage") as (session, person):
        plain = {dimension: lexicon.to_dict() for dimension, lexicon in built.items()}
        session.merge(SettingRow(name=_setting(group), value=_kept(session, group) | plain))
        for dimension, lexicon in built.items():
            detail = {"terms": len(lexicon.terms), "source": lexicon.source, "licence": lexicon.licence}
            desk.note(session, person, "lexicon", f"{group}/{dimension}", "build", detail=detail)


def lexica_of(desk: Desk, group: str) -> dict[str, lexica.Lexicon]:
    """Return the lexica that a study has of its own: dimension -> lexicon."""
    with desk.store.reading() as session:
        kept = _kept(session, group)
    return {name: lexica.Lexicon(tuple(one["terms"]), one["source"], one["licence"]) for name, one in kept.items()}


def terms_of(desk: Desk, group: str, dimension: str) -> Sequence[str]:
    """Return the terms that a dimension offers: the study's own, or those of the demo songs.

    Raises
    ------
    UnknownNameError
        No such group or dimension.

    """
    with desk.store.reading() as session:
        kept = _kept(session, group).get(dimension)
    return kept["terms"] if kept else lexica.demo_lexicon(group, dimension)


def _setting(group: str) -> str:
    return f"lexica of {group}"


def _kept(session: Session, group: str) -> dict[str, Any]:
    row = session.get(SettingRow, _setting(group))
    return {} if row is None else dict(row.value)
