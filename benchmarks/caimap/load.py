"""Fifty annotators at once: how long answers take, and whether anything fails or is lost.

    python -m benchmarks.caimap.load                                  # ten minutes
    python -m benchmarks.caimap.load --seconds 20 --people 5          # a trial
    python -m benchmarks.caimap.load --database postgresql

Server and annotators share the machine, over loopback. Exit status 1 where an answer was an error, something
acknowledged is not in the database, or the 95th percentile is over 300 ms.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
from benchmarks.caimap.people import Annotator, lost
from benchmarks.caimap.served import Served, database, make_study

from music_evals.caimap.storage.store import Store

P95_MS = 300.0
"""What the 95th percentile has to stay under."""


def main(argv: list[str] | None = None) -> int:
    """Print the figures of one run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, default=50, help="annotators at once (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long (default: %(default)s)")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between beats (default: %(default)s)")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(dir="/tmp") as name, database(options.database, Path(name)) as url:
        songs = int(options.people * (options.seconds / 15 + 2))  # more than they can work on
        accounts = make_study(url, options.people, songs)
        server = Served(Path(name), url)
        server.start()
        stop = threading.Event()
        people = [Annotator(account, server.port, options.every, stop) for account in accounts]
        for person in people:
            person.start()
        time.sleep(options.seconds)
        stop.set()
        for person in people:
            person.join()
        server.kill()
        store = Store(url)
        missing = lost(store, [person.snapshot() for person in people])
        store.close()
    return _say(people, missing, options.seconds, songs)


def _say(people: list[Annotator], missing: list[str], seconds: float, songs: int) -> int:
    times_ms = 1000 * np.array([time for person in people for time in person.times_sec])
    statuses = sum((person.statuses for person in people), Counter[str]())
    kept = [task for person in people for task in person.snapshot().values()]
    errors = {name: count for name, count in statuses.items() if name != "fine"}
    middle, p95, p99 = np.percentile(times_ms, [50, 95, 99])
    print(
        f"{len(people)} people, {seconds:g} s, {songs} songs: {len(times_ms)} requests, {len(times_ms) / seconds:.1f}/s"
    )
    print(f"median {middle:.0f} ms, p95 {p95:.0f} ms, p99 {p99:.0f} ms, longest {times_ms.max():.0f} ms")
    print(
        f"acknowledged: {sum(task.submitted for task in kept)} annotations, {sum(task.draft for task in kept)} drafts,"
    )
    print(f"  {sum(task.events for task in kept)} events; lost: {len(missing)} {missing[:5]}")
    print(f"errors: {errors or 'none'}")
    return int(bool(errors or missing or p95 > P95_MS))


if __name__ == "__main__":
    sys.exit(main())
