"""Pages of the second verification of settled structures: an administrator settles them again, then sees both."""

from __future__ import annotations

from typing import Final

from music_evals.caimap import structure
from music_evals.caimap.web.app import Answer, Asked, Page
from music_evals.caimap.web.forms import editor_values, structure_fields, structure_of
from music_evals.caimap.web.keeping import arranged, kept
from music_evals.caimap.work import settlements

__all__ = ["SETTLED_PAGES"]


def _settled(asked: Asked) -> Answer:
    """Show the passes and a form; what the inspector accepted is not shown, and after it was verified no form."""
    song = asked.path["song"]
    seen = settlements.unsettled(asked.desk, asked.who, song)
    (verified,) = (row for row in settlements.settlements(asked.desk, asked.who) if row.song == song)
    rows = structure.differences(*seen.passes) if len(seen.passes) == 2 else []
    base = seen.passes[0] if seen.passes else structure.pre_annotated(seen.song)
    values = {"seen": seen, "rows": rows, "verified": verified, "sent": []}
    return Answer("settled.html", values | editor_values(structure_fields(base), asked.form), waveform=True)


def _verify(asked: Asked) -> Answer:
    """Keep the verification, and show at once how far the two agree."""
    song = asked.path["song"]
    rows = settlements.verify_settlement(asked.desk, asked.who, song, structure_of(asked.form))
    return Answer("settled_both.html", {"song": song, "rows": rows})


SETTLED_PAGES: Final = (
    Page("GET", "/manage/settled/{song}", "manage", _settled),
    Page("POST", "/manage/settled/{song}", "manage", kept(_settled, _verify)),
    Page("POST", "/manage/settled/{song}/rows", "manage", arranged(_settled)),
)
"""Of `pages.PAGES`."""
