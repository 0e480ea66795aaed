"""Our readers of ABC, MusicXML and MIDI beside independent readers, on files that nobody here tuned on.

::

    python -m benchmarks.notation.corpora --files FOLDER                     # fetch the files, once
    python -m benchmarks.notation.run --files FOLDER --details DETAILS.jsonl # a look; nothing is written here
    python -m benchmarks.notation.run --files FOLDER --kind abc --write      # and into results.csv and README.md

verovio and partitura may live in an environment of their own (`--python`), abcjs in any folder (`--node-modules`). A
reader that is missing is named, and its rows of results.csv stay as they are.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from benchmarks.notation.corpora import CORPORA, Corpus, Item, check, items_of
from benchmarks.notation.readers import Notes
from benchmarks.notation.stripping import stripped, with_start_signs

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RESULTS = HERE / "results.csv"
PAGE = HERE / "README.md"
OURS = "music_evals"
TOLERANCE = 1 / 96  # of a quarter: ticks of other grids, and notes that start or end a tick apart
TOLERANCES = {"verovio": 1 / 48}  # its triplets end a sixtieth of a quarter early
ORDERS = {"played": True, "written": False}
KINDS = ("abc", "musicxml", "midi")
# Those that read a kind in an order: music21 in written order alone, since it plays repeats wrongly.
READERS = {
    ("abc", "played"): ("abcjs", "abc2midi", "verovio"),
    ("abc", "written"): ("abcjs", "abc2midi", "verovio"),
    ("musicxml", "played"): ("partitura", "verovio"),
    ("musicxml", "written"): ("partitura", "verovio", "music21"),
    ("midi", "written"): ("mido", "pretty_midi"),
}
# A tune counts as right where one of these gives the same notes.
YARDSTICKS = {
    "abc": ("abcjs", "abc2midi"),
    "musicxml": ("partitura", "verovio", "music21"),
    "midi": ("mido", "pretty_midi"),
}
ELSEWHERE = ("verovio", "partitura")  # run by --python
SIGNS = "equal_by_4.8"  # equal once the start signs of ABC 2.1, section 4.8, are written out for the other program
VERDICTS = ("equal", SIGNS, "differ", "refused", "crashed", "unjudged")
FIELDS = ("kind", "order", "corpus", "reader", "version", "files", *VERDICTS, "seconds")


class Answer(NamedTuple):
    """What a reader made of an item: ``notes``, or why there are none (``refused``, ``crashed``)."""

    outcome: str
    notes: Notes
    message: str
    seconds: float


class Child:
    """A reader in a process of its own, started again after a crash or when it takes too long."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str], limit: float) -> None:
        self.name, self.command, self.environment, self.limit = name, command, environment, limit
        self.process: subprocess.Popen[bytes] | None = None
        self.version = self.missing = ""
        self._pending = b""
        self.start()

    def start(self) -> None:
        """Start the process and wait for its version, or for what is missing."""
        self._pending = b""
        try:
            self.process = subprocess.Popen(
                self.command, cwd=ROOT, env=os.environ | self.environment, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            self.missing = str(error)
            return
        first = self._line(time.monotonic() + 60)
        told = json.loads(first) if first else {"missing": f"{self.command[0]} ended at once"}
        self.version, self.missing = told.get("version", self.version), told.get("missing", "")

    def ask(self, request: dict[str, Any]) -> Answer:
        """Return the answer to a request; a crash or a request over the limit ends the process."""
        if self.process is None:
            self.start()
        begun = time.monotonic()
        line = None
        if self.process is not None and self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.write(json.dumps(request).encode() + b"\n")
                self.process.stdin.flush()
                line = self._line(begun + self.limit)
        seconds = time.monotonic() - begun
        if line:
            told: dict[str, Any] = json.loads(line)
            ((outcome, value),) = told.items()
            notes = [(onset, duration, pitch) for onset, duration, pitch in value] if outcome == "notes" else []
            return Answer(outcome, notes, "" if outcome == "notes" else value, seconds)
        self.stop()
        message = f"over {self.limit:g} s" if seconds >= self.limit else "the process died"
        return Answer("crashed", [], message, seconds)

    def stop(self) -> None:
        """End the process and those that it started."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            for stream in (self.process.stdin, self.process.stdout):
                if stream is not None:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()
            self.process = None

    def _line(self, deadline: float) -> bytes | None:
        """Return the next line of the process; nothing where it ends, or is not there in time."""
        if self.process is None or self.process.stdout is None:
            return None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                if not selector.select(max(deadline - time.monotonic(), 0)):
                    return None
                read = os.read(self.process.stdout.fileno(), 1 << 16)
                if not read:
                    return None
                self._pending += read
        line, _, self._pending = self._pending.partition(b"\n")
        return line


def first_difference(ours: Notes, theirs: Notes, tolerance: float = TOLERANCE) -> dict[str, Any] | None:
    """Return the first place where two multisets of notes differ, or nothing where they are equal.

    Notes are equal where pitches are, and onsets and durations within `tolerance`.
    """
    left: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for onset, duration, pitch in sorted(theirs):
        left[round(pitch)].append((onset, duration))
    alone: list[tuple[float, float, int]] = []
    for onset, duration, pitch in sorted(ours):
        candidates = left[pitch]
        for i, (other, length) in enumerate(candidates):
            if other > onset + tolerance:
                alone.append((onset, duration, pitch))
                break
            if abs(other - onset) <= tolerance and abs(length - duration) <= tolerance:
                del candidates[i]
                break
        else:
            alone.append((onset, duration, pitch))
    others = sorted((onset, duration, pitch) for pitch, pairs in left.items() for onset, duration in pairs)
    if not alone and not others:
        return None
    place = min(onset for onset, *_ in [*alone, *others])
    return {
        "quarter": round(place, 3),
        "ours": _shown(note for note in alone if note[0] <= place + 1),
        "theirs": _shown(note for note in others if note[0] <= place + 1),
        "n_ours": len(ours),
        "n_theirs": len(theirs),
    }


def _shown(notes: Iterable[tuple[float, float, int]]) -> list[list[float]]:
    return [[round(onset, 3), round(duration, 3), pitch] for onset, duration, pitch in notes][:6]


class Tally:
    """Counts of one reader on one collection."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.seconds = 0.0

    def add(self, verdict: str, seconds: float) -> None:
        """Count one item."""
        self.counts[verdict] += 1
        self.seconds += seconds

    def row(self, corpus: Corpus, order: str, reader: str, version: str) -> dict[str, str]:
        """Return the row of results.csv."""
        counts = {name: str(self.counts[name]) for name in VERDICTS}
        return {
            "kind": corpus.kind, "order": order, "corpus": corpus.name, "reader": reader, "version": version,
            "files": str(self.counts.total()), **counts, "seconds": f"{self.seconds:.1f}",
        }  # fmt: skip


def judge(ours: Answer, theirs: Answer, tolerance: float = TOLERANCE) -> tuple[str, dict[str, Any]]:
    """Return the verdict on one reader's answer, and what there is to say of it."""
    if theirs.outcome != "notes":
        return theirs.outcome, {"message": theirs.message}
    if ours.outcome != "notes":
        return "unjudged", {}
    difference = first_difference(ours.notes, theirs.notes, tolerance)
    return ("equal", {}) if difference is None else ("differ", difference)


def judge_ours(ours: Answer, verdicts: dict[str, str], kind: str) -> str:
    """Return the verdict on our answer: the best of the yardsticks', so differ only where none gives the same notes.

    What no yardstick reads is unjudged, also where we refuse it.
    """
    found = [verdicts[name] for name in YARDSTICKS[kind] if name in verdicts]
    answered = any(verdict not in {"refused", "crashed"} for verdict in found)
    if ours.outcome == "crashed" or (answered and ours.outcome != "notes"):
        return ours.outcome
    return next((verdict for verdict in ("equal", SIGNS, "differ") if verdict in found), "unjudged")


def compare(
    corpus: Corpus, order: str, items: list[Item], children: dict[str, Child], details: TextIO | None
) -> Iterator[dict[str, str]]:
    """Read all items of a collection with all readers; yield one row a reader, ours first."""
    readers = [children[name] for name in READERS[corpus.kind, order] if name in children]
    tallies = {name: Tally() for name in (OURS, *(reader.name for reader in readers))}
    for item in items:
        request = {"kind": corpus.kind, "played": ORDERS[order], "content": item.content}
        ours = children[OURS].ask(request)
        copy = stripped(item.content, ORDERS[order]) if corpus.kind == "abc" else item.content
        answers, verdicts, notes = {}, {}, {}
        for reader in readers:
            name = reader.name
            answers[name] = theirs = reader.ask(request | {"content": copy})
            verdicts[name], notes[name] = judge(ours, theirs, TOLERANCES.get(name, TOLERANCE))
            if corpus.kind == "abc" and verdicts[name] not in {"equal", "unjudged"}:
                again = with_start_signs(copy)
                verdict, found = judge(ours, reader.ask(request | {"content": again})) if again != copy else ("", {})
                verdicts[name] = SIGNS if verdict == "equal" else verdicts[name]
                notes[name]["with_start_signs"] = {"verdict": verdict, **found}
            tallies[name].add(verdicts[name], theirs.seconds)
        verdict = judge_ours(ours, verdicts, corpus.kind)
        tallies[OURS].add(verdict, ours.seconds)
        if details is not None:
            said = {name: {"verdict": verdicts[name], **notes[name]} for name in verdicts}
            place = {"kind": corpus.kind, "order": order, "corpus": corpus.name, "file": item.file, "tune": item.tune}
            known = [answers[name].notes for name in YARDSTICKS[corpus.kind] if verdicts.get(name) == "differ"]
            agree = len(known) > 1 and all(first_difference(known[0], other) is None for other in known[1:])
            line = {**place, "verdict": verdict, "message": ours.message, "yardsticks_agree": agree, "readers": said}
            details.write(json.dumps(line, ensure_ascii=False) + "\n")
    for name, tally in tallies.items():
        yield tally.row(corpus, order, name, children[name].version)


def start_readers(arguments: argparse.Namespace, kinds: Iterable[str]) -> dict[str, Child]:
    """Start all readers of these kinds; name those that are missing."""
    wanted = {name for (kind, _), names in READERS.items() if kind in kinds for name in names}
    if arguments.readers:
        wanted &= set(arguments.readers)
    children = {}
    for name in (OURS, *sorted(wanted)):
        python = arguments.python if name in ELSEWHERE else sys.executable
        command = [python, "-m", "benchmarks.notation.readers", name]
        environment = {"OMP_NUM_THREADS": "1"}
        if name == "abcjs":
            command = ["node", str(HERE / "abcjs.mjs")]
            environment = {"NODE_PATH": str(arguments.node_modules.resolve())}
        child = Child(name, command, environment, arguments.limit)
        if child.missing:
            print(f"{name} is missing, its rows stay as they are: {child.missing}", file=sys.stderr)
            child.stop()
        else:
            children[name] = child
    if OURS not in children:
        sys.exit(f"{OURS} is not installed")
    return children


def summary(rows: Iterable[dict[str, str]]) -> list[str]:
    """Return a Markdown table: our share of items equal to one yardstick, of all that a yardstick reads.

    It is given twice: as the files are, and with those that are equal once the start signs are written out.
    """
    totals: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        if row["reader"] == OURS:
            total = totals.setdefault((row["kind"], row["order"]), Counter())
            total.update({name: int(row.get(name) or 0) for name in ("files", *VERDICTS)})
    head = ["kind", "order", "yardsticks", "read", "equal", "with start signs", "differ", "refused", "crashed"]
    lines = [f"| {' | '.join([*head, 'share', 'share with start signs'])} |", f"|{'---|' * 3}{'---:|' * 8}"]
    for (kind, order), total in totals.items():
        judged = total["files"] - total["unjudged"]
        yardsticks = ", ".join(name for name in YARDSTICKS[kind] if name in READERS[kind, order])
        cells = [kind, order, yardsticks, judged, *(total[name] for name in VERDICTS[:-1])]
        plain, with_signs = total["equal"], total["equal"] + total[SIGNS]
        shares = (f"{equal / judged if judged else 0:.2%}" for equal in (plain, with_signs))
        lines.append(f"| {' | '.join(map(str, [*cells, *shares]))} |")
    return lines


def by_collection(rows: Iterable[dict[str, str]]) -> list[str]:
    """Return Markdown tables, one a kind: how each reader fares on each collection, and its seconds."""
    cells: dict[str, dict[tuple[str, str, str], dict[str, str]]] = {}  # kind -> line -> reader -> cell
    for row in rows:
        with_signs = f" + {row[SIGNS]}" if row.get(SIGNS) not in {None, "", "0"} else ""
        failed = int(row["refused"]) + int(row["crashed"])
        line = cells.setdefault(row["kind"], {}).setdefault((row["order"], row["corpus"], row["files"]), {})
        line[row["reader"]] = f"{row['equal']}{with_signs} / {row['differ']} / {failed}, {row['seconds']} s"
    lines: list[str] = []
    for kind in KINDS:
        readers = (OURS, *dict.fromkeys(name for (own, _), names in READERS.items() if own == kind for name in names))
        found = [name for name in readers if any(name in line for line in cells.get(kind, {}).values())]
        lines += ["", f"| {' | '.join((kind, 'order', 'files', *found))} |", f"|---|---|{'---:|' * (len(found) + 1)}"]
        for (order, corpus, files), line in cells.get(kind, {}).items():
            lines.append(f"| {' | '.join((corpus, order, files, *(line.get(name, '') for name in found)))} |")
    return lines[1:]


def merged(old: list[dict[str, str]], new: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return all rows, the new ones in place of those of the same collection, order and reader."""

    def key(row: dict[str, str]) -> tuple[str, str, str, str]:
        return row["kind"], row["order"], row["corpus"], row["reader"]

    corpora = [corpus.name for corpus in CORPORA]

    def rank(row: dict[str, str]) -> tuple[int, str, bool, str]:
        return corpora.index(row["corpus"]), row["order"], row["reader"] != OURS, row["reader"]

    rows = {key(row): row for row in [*old, *new] if row["corpus"] in corpora}
    return sorted(rows.values(), key=rank)


def main() -> None:
    """Compare, print one row a reader and collection, and write them where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=Path, required=True, help="folder that corpora.py filled")
    parser.add_argument("--kind", choices=KINDS, action="append", help="kinds of files (default: all)")
    parser.add_argument("--order", choices=ORDERS, action="append", help="played, written or both (default)")
    parser.add_argument("--corpus", action="append", help="names of collections (default: all)")
    parser.add_argument("--readers", nargs="+", help="independent readers (default: all)")
    parser.add_argument("--every", type=int, default=1, help="one item in so many, for a quick look; never written")
    parser.add_argument("--limit", type=float, default=60, help="seconds for one item (default: %(default)s)")
    parser.add_argument("--details", type=Path, help="file for one JSON line an item: verdicts, first differences")
    parser.add_argument("--write", action="store_true", help="write results.csv and the table of README.md")
    parser.add_argument("--python", default=sys.executable, help="interpreter that has verovio and partitura")
    parser.add_argument("--node-modules", type=Path, default=Path("node_modules"), help="folder that holds abcjs")
    arguments = parser.parse_args()
    if arguments.write and arguments.every > 1:
        parser.error("--write needs all items; leave --every out")
    wanted = [
        corpus
        for corpus in CORPORA
        if corpus.kind in (arguments.kind or KINDS) and corpus.name in (arguments.corpus or corpus.name)
    ]
    children = start_readers(arguments, {corpus.kind for corpus in wanted})
    rows: list[dict[str, str]] = []
    with contextlib.ExitStack() as stack:
        for child in children.values():
            stack.callback(child.stop)
        details = stack.enter_context(arguments.details.open("w", encoding="utf-8")) if arguments.details else None
        for corpus in wanted:
            rows += rows_of(corpus, arguments, children, details)
    print("\n".join(summary(rows)))
    if arguments.write:
        # Our own rows are against all yardsticks: with one of them missing they stay as they are.
        write([row for row in rows if row["reader"] != OURS or children.keys() >= set(YARDSTICKS[row["kind"]])])


def rows_of(
    corpus: Corpus, arguments: argparse.Namespace, children: dict[str, Child], details: TextIO | None
) -> list[dict[str, str]]:
    """Return the rows of one collection in all orders asked for, and print them."""
    wrong = check(corpus, arguments.files)
    if wrong:
        print(f"{corpus.name} is left out: {wrong}", file=sys.stderr)
        return []
    items = list(items_of(corpus, arguments.files))[:: arguments.every]
    rows = []
    for order in arguments.order or ORDERS:
        if (corpus.kind, order) in READERS:
            for row in compare(corpus, order, items, children, details):
                print(" | ".join(row[field] for field in FIELDS), flush=True)
                rows.append(row)
    return rows


def write(rows: list[dict[str, str]]) -> None:
    """Write results.csv and the tables of README.md; rows that were not measured now stay."""
    from benchmarks.musib.tables import fill

    old: list[dict[str, str]] = []
    if RESULTS.is_file():
        with RESULTS.open(encoding="utf-8", newline="") as file:
            old = list(csv.DictReader(file))
    rows = merged(old, rows)
    with RESULTS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    tables = {"summary": "\n".join(summary(rows)), "collections": "\n".join(by_collection(rows))}
    page = fill(PAGE.read_text(encoding="utf-8"), tables)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
