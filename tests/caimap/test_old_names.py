"""Names and modules of the platform that were changed: the old ones work for one release, and warn."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings

import pytest

pytest.importorskip("sqlalchemy")


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("services.study", "Desk", "StudyService"),
        ("services.accounts", "found", "create_first_admin"),
        ("services.accounts", "speak", "set_language"),
        ("services.managing", "say", "post_message"),
        ("services.managing", "enter", "add_ledger_entry"),
        ("services.managing", "decide", "review_song"),
        ("services.annotating", "heard", "task_listening"),
        ("domain.consistency", "Judged", "Measurement"),
        ("domain.assurance", "judge_round", "evaluate_round"),
    ],
)
def test_old_names_warn(module: str, old: str, new: str) -> None:
    room = importlib.import_module(f"music_evals.caimap.{module}")
    with pytest.warns(DeprecationWarning, match=f"{old} is called {new} now"):
        assert getattr(room, old) is getattr(room, new)
    with pytest.raises(AttributeError):
        room.nothing  # noqa: B018


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("values", "domain.values"),
        ("roles", "domain.machine"),
        ("exporting", "exchange.exporting"),
        ("work.service", "services.study"),
        ("work.desk", "services.study"),
        ("work.accounts", "services.accounts"),
        ("work.lessons", "services.training"),
        ("web.reporting", "exchange.reporting"),
    ],
)
def test_old_modules_warn(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("music_evals.caimap.work")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, f"music_evals.caimap.{old}", raising=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module = importlib.import_module(f"music_evals.caimap.{old}")
    assert module is importlib.import_module(f"music_evals.caimap.{new}")
    said = [str(warning.message) for warning in caught if warning.category is DeprecationWarning]
    assert any(f"{old} is called music_evals.caimap.{new} now" in message for message in said)


@pytest.mark.slow
def test_old_modules_are_imported_from_an_old_package() -> None:
    """In a process that has imported nothing else of the platform, as a user's script does."""
    script = """
import importlib, sys, warnings
for old, new in ("hiding", "tasks"), ("practising", "training"), ("weeks", "people"):
    for name in [name for name in sys.modules if name.startswith("music_evals")]:
        del sys.modules[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(f"from music_evals.caimap.work import {old} as module")
    assert module is importlib.import_module(f"music_evals.caimap.services.{new}"), old
    messages = [str(warning.message) for warning in caught if warning.category is DeprecationWarning]
    assert any(old in message for message in messages), messages
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
