"""Annotators who work as the pages' scripts do: a beat and a draft every few seconds, then the annotation.

Each keeps what the server acknowledged; `lost` reads the database and says what of it is not there.
"""

from __future__ import annotations

import dataclasses
import http.client
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from benchmarks.caimap.served import DURATION_SEC, Account
from sqlalchemy import func, select

from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS
from music_evals.caimap.storage.store import Store
from music_evals.caimap.storage.tables import EventRow, TaskRow

__all__ = ["Annotator", "Kept", "lost"]

_TIMEOUT_SEC = 30.0
_STRUCTURE_DRAFTS = 6  # then a structure is handed in; a description when the song was heard


@dataclasses.dataclass
class Kept:
    """What the server acknowledged for one task.

    Attributes
    ----------
    draft
        Number of the last draft.
    events
        How many events.
    submitted
        The annotation was taken.

    """

    draft: int = 0
    events: int = 0
    submitted: bool = False


class Annotator(threading.Thread):
    """Somebody at work until they are told to stop.

    Parameters
    ----------
    account
        Who.
    port
        Of the server, on this machine.
    every_sec
        Between two requests of a task.
    stop
        Is set when they are to stop.

    """

    def __init__(self, account: Account, port: int, every_sec: float, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.account, self.port, self.every, self.stop = account, port, every_sec, stop
        self.link: http.client.HTTPConnection | None = None
        self.kept: dict[int, Kept] = {}
        self.times_sec: list[float] = []
        self.statuses: Counter[str] = Counter()
        self.guard = threading.Lock()

    def run(self) -> None:
        """Work."""
        self.stop.wait((self.account.person % 50) / 50 * self.every)  # not all at the same moment
        while not self.stop.is_set():
            try:
                self._task()
            except (OSError, http.client.HTTPException):  # the server is away
                self.statuses["no answer"] += 1
                self._hang_up()
                self.stop.wait(0.2)
        self._hang_up()

    def snapshot(self) -> dict[int, Kept]:
        """Return what was acknowledged up to now."""
        with self.guard:
            return {task: dataclasses.replace(kept) for task, kept in self.kept.items()}

    def _hang_up(self) -> None:
        if self.link is not None:
            self.link.close()
        self.link = None

    def _ask(self, method: str, path: str, body: str = "", kind: str = "") -> tuple[int, str, str]:
        """Ask, and return status, location and text; how long it took is written down."""
        if self.link is None:
            self.link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_TIMEOUT_SEC)
        headers = {"Cookie": f"caimap_session={self.account.token}", "X-CSRF": self.account.csrf, "Content-Type": kind}
        begun = time.perf_counter()
        self.link.request(method, path, body.encode() or None, headers)
        answer = self.link.getresponse()
        text = answer.read().decode()
        self.times_sec.append(time.perf_counter() - begun)
        fine = answer.status < 400
        self.statuses["fine" if fine else f"{answer.status} {method} {re.sub(r'[0-9]+', 'N', path)}"] += 1
        return answer.status, answer.getheader("location", ""), text

    def _post(self, path: str, fields: dict[str, str]) -> tuple[int, str, str]:
        return self._ask("POST", path, urlencode(fields), "application/x-www-form-urlencoded")

    def _send(self, path: str, value: Any) -> dict[str, Any]:
        status, _, text = self._ask("POST", path, json.dumps(value), "application/json")
        return json.loads(text) if status < 400 else {}

    def _task(self) -> None:
        """Take a task, or go on with the one that was begun, and hand it in."""
        status, where, _ = self._post("/work/next", {})
        if status != 303 or not where.startswith("/task/"):
            self.stop.wait(self.every)
            return
        task = int(where.rpartition("/")[2])
        with self.guard:
            kept = self.kept.setdefault(task, Kept())
        page = self._ask("GET", where)[2]
        version = int(re.search(r'name="version" value="([0-9]+)"', page)[1])  # type: ignore[index]
        structure = 'data-enforced="no"' in page
        found = self._report(where, kept, "play", 0.0)
        begun = time.monotonic()
        while not self.stop.wait(self.every):
            played = time.monotonic() - begun
            found = self._report(where, kept, "beat" if played < DURATION_SEC else "ended", min(played, DURATION_SEC))
            if not found:
                return
            if structure or found["writes"]:
                number = kept.draft + 1
                saved = self._send(f"{where}/draft", {"version": version, "fields": {"theme": str(number)}})
                if not saved:
                    return
                version = saved["version"]
                with self.guard:
                    kept.draft = number
            if (found["complete"] and not structure) or (structure and kept.draft >= _STRUCTURE_DRAFTS):
                status, _, _ = self._post(f"{where}/submit", _filled(page, version))
                with self.guard:
                    kept.submitted = status == 303
                return

    def _report(self, where: str, kept: Kept, kind: str, at: float) -> dict[str, Any]:
        found = self._send(f"{where}/events", {"events": [{"kind": kind, "position_sec": at}]})
        if found:
            with self.guard:
                kept.events += 1
        return found


def _filled(page: str, version: int) -> dict[str, str]:
    """Return the filled-in form of a task."""
    if 'data-enforced="no"' in page:
        lines = {"line_0": "春眠不觉晓", "label_0": "verse1", "line_1": "处处闻啼鸟"}
        return {**lines, "theme": "春天的早晨", "version": str(version)}
    group = "amateur" if 'name="tags_perception_of_uniqueness"' in page else "professional"
    tags = {
        f"tags_{name}": f"温暖{at}、明亮{at}、安静{at}"
        for at, name in enumerate(DIMENSIONS[group])
        if name != AUDIO_EFFECTS
    }
    return {**tags, "overall_text": "这是一首安静的歌，" * 8, "clear": "yes", "version": str(version)}


def lost(store: Store, people: Sequence[dict[int, Kept]]) -> list[str]:
    """Say what was acknowledged and is not in the database.

    Parameters
    ----------
    store
        The study.
    people
        Of each annotator, task -> what was acknowledged.

    """
    missing = []
    with store.reading() as session:
        rows = {row.id: row for row in session.scalars(select(TaskRow))}
        counted = select(EventRow.task, func.count()).group_by(EventRow.task)
        events = {task: count for task, count in session.execute(counted)}  # noqa: C416  (rows are no pairs to mypy)
    for kept_by_task in people:
        for task, kept in kept_by_task.items():
            row = rows.get(task)
            if row is None:
                missing.append(f"task {task}")
                continue
            if events.get(task, 0) < kept.events:
                missing.append(f"task {task}: {kept.events - events.get(task, 0)} events")
            if kept.submitted and row.result is None:
                missing.append(f"task {task}: its annotation")
            # a later draft may be there, whose acknowledgement was cut off; a submission empties the draft
            if row.result is None and int(row.draft.get("theme", 0)) < kept.draft:
                missing.append(f"task {task}: draft {kept.draft}")
    return missing
