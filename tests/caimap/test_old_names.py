"""Names of the platform that were changed: the old ones work for one release, and warn."""

from __future__ import annotations

import importlib

import pytest

pytest.importorskip("sqlalchemy")


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("work.desk", "Desk", "StudyService"),
        ("work.accounts", "found", "create_first_admin"),
        ("work.accounts", "speak", "set_language"),
        ("work.managing", "say", "post_message"),
        ("work.managing", "enter", "add_ledger_entry"),
        ("work.managing", "decide", "review_song"),
        ("work.annotating", "heard", "task_listening"),
        ("web.app", "Asked", "Request"),
        ("web.app", "Answer", "Response"),
        ("consistency", "Judged", "Measurement"),
        ("training", "judge_round", "evaluate_round"),
    ],
)
def test_old_names_warn(module: str, old: str, new: str) -> None:
    room = importlib.import_module(f"music_evals.caimap.{module}")
    with pytest.warns(DeprecationWarning, match=f"{old} is called {new} now"):
        assert getattr(room, old) is getattr(room, new)
    with pytest.raises(AttributeError):
        room.nothing  # noqa: B018
