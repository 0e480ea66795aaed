"""Kill the server again and again under load, and look for everything that it had acknowledged.

    python -m benchmarks.caimap.kill                                          # 20 times, in SQLite and in PostgreSQL
    python -m benchmarks.caimap.kill --times 2 --least 100 --database sqlite  # a trial

Killed by SIGKILL at a moment drawn from a seed, between 0.5 and 5 s after it acknowledged the first write. After each
start, what annotators had been told is looked for in the database. Exit status 1 where anything is not there, or where
so little was acknowledged that it proves little.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.caimap.people import Annotator, lost
from benchmarks.caimap.served import Served, database, make_study

from music_evals.caimap.storage.store import Store
from music_evals.errors import MissingBackendError


def main(argv: list[str] | None = None) -> int:
    """Print a line for each kind of database."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=20, help="kills (default: %(default)s)")
    parser.add_argument("--people", type=int, default=12, help="annotators at once (default: %(default)s)")
    parser.add_argument("--every", type=float, default=0.02, help="seconds between beats (default: %(default)s)")
    parser.add_argument("--least", type=int, default=1000, help="acknowledged writes wanted (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=7, help="of the moments (default: %(default)s)")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), action="append")
    options = parser.parse_args(argv)
    worst = 0
    for kind in options.database or ("sqlite", "postgresql"):
        try:
            worst = max(worst, _run(kind, options))
        except MissingBackendError as error:
            print(f"{kind}: left out, {error}")
    return worst


def _run(kind: str, options: argparse.Namespace) -> int:
    moments = random.Random(options.seed)
    with tempfile.TemporaryDirectory(dir="/tmp") as name, database(kind, Path(name)) as url:
        accounts = make_study(url, options.people, 40 * options.people)
        server, store, stop = Served(Path(name), url), Store(url), threading.Event()
        people = [Annotator(account, server.port, options.every, stop) for account in accounts]
        missing: list[str] = []
        server.start()
        for person in people:
            person.start()
        for _ in range(options.times):
            _wait_for_writes(people)
            time.sleep(moments.uniform(0.5, 5.0))
            server.kill()
            told = [person.snapshot() for person in people]
            server.start()
            missing += lost(store, told)
        stop.set()
        for person in people:
            person.join()
        server.kill()
        missing += lost(store, [person.snapshot() for person in people])
        store.close()
    cut = sum(person.statuses["no answer"] for person in people)
    submitted, drafts, events = _acknowledged(people)
    acknowledged = submitted + drafts + events
    print(
        f"{kind}: killed {options.times} times, {cut} requests without an answer; acknowledged {acknowledged} writes: "
        f"{submitted} annotations, {drafts} drafts, {events} events; lost: {len(missing)} {missing[:5]}"
    )
    if acknowledged < options.least:
        print(f"{kind}: fewer than {options.least} acknowledged writes, which proves little; run it on idle cores")
    return int(bool(missing) or acknowledged < options.least)


def _wait_for_writes(people: Sequence[Annotator]) -> None:
    """Wait until the server has acknowledged something since it was started, a minute at most."""
    before, latest = _acknowledged(people), time.monotonic() + 60.0
    while _acknowledged(people) == before and time.monotonic() < latest:
        time.sleep(0.02)


def _acknowledged(people: Sequence[Annotator]) -> tuple[int, int, int]:
    """Return how many annotations, drafts and events the server acknowledged."""
    kept = [task for person in people for task in person.snapshot().values()]
    return sum(task.submitted for task in kept), sum(task.draft for task in kept), sum(task.events for task in kept)


if __name__ == "__main__":
    sys.exit(main())
