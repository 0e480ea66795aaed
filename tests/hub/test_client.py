"""What the client raises, by our names."""

from __future__ import annotations

import ast
import errno
import re
import threading
import time
from pathlib import Path

import pytest

from music_evals.errors import HubOfflineError, UnreadableFileError
from music_evals.hub import client
from music_evals.hub.client import named


def lost() -> OSError:
    return FileNotFoundError(errno.ENOENT, "No such file or directory", "weights.safetensors")


def test_a_file_on_this_machine_is_no_lost_connection() -> None:
    with (
        pytest.raises(UnreadableFileError, match=r"committing: weights.safetensors on this machine fails"),
        named("committing"),
    ):
        raise lost()
    with pytest.raises(UnreadableFileError, match=r"weights.safetensors"), named("committing"):
        raise RuntimeError("upload") from lost()


def test_a_lost_connection() -> None:
    for error in (ConnectionResetError(errno.ECONNRESET, "reset"), TimeoutError("late")):
        with pytest.raises(HubOfflineError), named("committing"):
            raise error


OPTIONS = "adopt all config dataset dry-run hardware limit model org overwrite pr prune revision source split system"


def test_errors_name_no_options_of_the_command_line() -> None:
    option = re.compile(rf"(?<![\w-])--({OPTIONS.replace(' ', '|')})\b")
    for path in Path(client.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        texts = [
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        assert [text for text in texts if option.search(text)] == [], path.name


def test_what_waits_says_so_until_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[str, float]] = []
    before = threading.active_count()
    monkeypatch.setattr(client, "SAY_SEC", 0.05)

    def wait_and_fall() -> None:
        with client.Hub(waiting=lambda *said: heard.append(said)).asking("asking"):
            time.sleep(0.3)
            raise lost()

    with pytest.raises(UnreadableFileError):
        wait_and_fall()
    assert {what for what, _ in heard} == {"asking"}
    assert [seconds for _, seconds in heard] == sorted(seconds for _, seconds in heard)
    assert threading.active_count() == before


def test_the_client_of_others_is_left_as_it_was() -> None:
    from huggingface_hub import get_session

    hooks = {key: list(found) for key, found in get_session().event_hooks.items()}
    with client.Hub().asking("asking"):
        assert len(get_session().event_hooks["request"]) == len(hooks["request"]) + 1
    assert get_session().event_hooks == hooks
