"""From what listeners sent to tidy tables: every answer is held against its plan first.

An answer that no listener can have given is refused, with its row: a plan that does not exist, a sound that was not
played, a question that was not asked, a value off the scale, less heard than the page demands, or more than there was
time for. Who is blind while answering is not blind here: the key says which system was heard.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from music_evals.errors import InvalidInputError, PairCountError
from music_evals.pipelines.study_tables import SIMILARITY, located_at
from music_evals.studies.listening.settings import CHECK, LQ1, SCALES, ListeningSettings
from music_evals.studies.pairs import StudyPair
from music_evals.studies.ratings import Rating

MOST_TONES = 5

_UNDER_SEC = 0.1
"""By so much may a page count too little: it looks at its player from time to time."""
_OVER_SEC, _OVER_SHARE = 0.25, 1.02
"""By so much may it count more of a sound than there is, or than there was time for: clocks differ."""

Row = dict[str, Any]


class ListeningKey(NamedTuple):
    """What stays with the leader of a test."""

    settings: ListeningSettings
    pairs: Mapping[str, StudyPair]  # every sound that is rated, by the name of its file
    checks: Mapping[str, int]  # name of a file -> how many tones it holds
    seconds: Mapping[str, float]  # name of a file -> how long it plays


class TrialAnswer(NamedTuple):
    """What one listener did on one page."""

    trial: Mapping[str, Any]  # the page, as the plan has it
    order_index: int  # pages that are no attention checks before it
    values: Mapping[str, Mapping[str, float]]  # question -> file -> value
    heard_sec: Mapping[str, float]  # file -> how much of it was heard, without what was heard twice
    seconds: float  # how long the page was open


class Answers(NamedTuple):
    """All answers of one listener, checked; `server_sec` passed from joining to sending, NaN where no server knows."""

    listener: str
    slot: int
    block: int
    trials: tuple[TrialAnswer, ...]
    server_sec: float = math.nan
    received_at: float | None = None


class ListeningTables(NamedTuple):
    """The tidy tables of a listening test, rows as dictionaries."""

    ratings: list[Row]
    """In the columns that `studies.ratings` reads, and more; in ``ab`` the share of its comparisons on an item that a
    system won, with one listener."""
    listening: list[Row]
    """As of an editing test (`pipelines.study_tables.LISTENING`), where `LQ1` was asked in the type ``rating``."""
    choices: list[Row]  # of ``ab``: one row a choice between two sounds
    checks: list[Row]  # one row an attention check
    listeners: list[Row]


def check_answers(content: Any, *, listener: str, plans: Sequence[Mapping[str, Any]], key: ListeningKey) -> Answers:
    """Check the answers of one listener against the plan."""
    if not isinstance(content, Mapping) or not isinstance(content.get("trials"), list):
        raise InvalidInputError(f"{listener}: expected an object with `slot` and `trials`; got no answers of this test")
    slot = content.get("slot")
    if isinstance(slot, bool) or not isinstance(slot, int) or not 0 <= slot < len(plans):
        raise InvalidInputError(f"{listener}: no plan {slot!r}; the test has 0 to {len(plans) - 1}")
    plan, rows = plans[slot], content["trials"]
    if len(rows) != len(plan["trials"]):
        raise PairCountError(f"{listener}: {len(rows)} pages were answered, and the plan has {len(plan['trials'])}")
    answered: list[TrialAnswer] = []
    done = 0
    for number, (trial, row) in enumerate(zip(plan["trials"], rows, strict=True), start=1):
        with located_at(f"{listener}, row {number}"):
            answered.append(_trial(row, trial, done, key))
        done += trial["type"] != "check"
    return Answers(listener, slot, int(plan["block"]), tuple(answered))


def _trial(row: Any, trial: Mapping[str, Any], done: int, key: ListeningKey) -> TrialAnswer:
    if not isinstance(row, Mapping) or not all(isinstance(row.get(name), Mapping) for name in ("answers", "heard_sec")):
        raise InvalidInputError("expected `answers`, `heard_sec` and `seconds`")
    seconds = _number(row.get("seconds"), "seconds", 0, math.inf)
    _check_names(row["answers"], trial["questions"], "question", "asked")
    values = {}
    for question in trial["questions"]:
        by_file = row["answers"][question]
        if not isinstance(by_file, Mapping):
            raise InvalidInputError(f"{question}: expected a value for each sound")
        _check_names(by_file, trial["stimuli"], "sound", "played")
        low, high = (1, MOST_TONES) if trial["type"] == "check" else SCALES[trial["type"]]
        values[question] = {file: _number(by_file[file], question, low, high) for file in trial["stimuli"]}
        for file, value in values[question].items():
            if value != int(value):
                raise InvalidInputError(
                    f"{question} must be a whole number from {low} to {high}, got {by_file[file]!r}"
                )
        if trial["type"] == "ab" and sum(values[question].values()) != 1:
            raise InvalidInputError(f"{question}: one of the two sounds is chosen, got {dict(by_file)}")
    played = [*trial["stimuli"], *([trial["reference"]] if trial["reference"] else [])]
    _check_names(row["heard_sec"], played, "sound", "played")
    heard_sec = {file: _heard_sec(row["heard_sec"][file], file, key) for file in played}
    if sum(heard_sec.values()) > _OVER_SHARE * seconds + _OVER_SEC:
        raise InvalidInputError(
            f"{sum(heard_sec.values()):.1f} s were heard on a page that was open for {seconds:.1f} s"
        )
    return TrialAnswer(trial, done, values, heard_sec, seconds)


def _check_names(values: Mapping[str, Any], expected: Sequence[str], noun: str, verb: str) -> None:
    for name in values:
        if name not in expected:
            raise InvalidInputError(f"the {noun} {name!r} was not {verb} there")
    for name in expected:
        if name not in values:
            raise InvalidInputError(f"no value for the {noun} {name!r}")


def _number(value: Any, name: str, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        limits = f"from {low:g} to {high:g}" if math.isfinite(high) else f"of at least {low:g}"
        raise InvalidInputError(f"{name} must be a number {limits}, got {value!r}")
    if not math.isfinite(value):
        raise InvalidInputError(f"{name} must be finite, got {value!r}")
    return float(value)


def _heard_sec(value: Any, file: str, key: ListeningKey) -> float:
    seconds = key.seconds[PurePosixPath(file).name]
    heard_sec = _number(value, f"heard_sec of {file}", 0, math.inf)
    least = key.settings.heard_share * seconds
    if heard_sec < least - _UNDER_SEC:
        raise InvalidInputError(f"{heard_sec:.1f} s of {file} were heard; an answer needs {least:.1f} s")
    if heard_sec > _OVER_SHARE * seconds + _OVER_SEC:
        raise InvalidInputError(f"{heard_sec:.1f} s of {file} were heard, which lasts {seconds:.1f} s")
    return heard_sec


def listening_tables(answered: Iterable[Answers], key: ListeningKey) -> ListeningTables:
    """Return the tidy tables of a test."""
    tables = ListeningTables([], [], [], [], [])
    listeners: set[str] = set()
    for answers in answered:
        if answers.listener in listeners:
            raise PairCountError(f"listener {answers.listener!r} answered twice; keep one of the two")
        listeners.add(answers.listener)
        test = [answer for answer in answers.trials if answer.trial["type"] != "check"]
        checks = []
        for answer in answers.trials:
            if answer.trial["type"] == "check":
                (file,) = answer.trial["stimuli"]
                name, tones = PurePosixPath(file).name, int(answer.values[CHECK][file])
                row = {"listener": answers.listener, "file": name, "answer": tones, "tones": key.checks[name]}
                checks.append({**row, "is_right": tones == key.checks[name]})
        is_ab = key.settings.type == "ab"
        listener = {
            "listener": answers.listener, "slot": answers.slot, "block": answers.block, "n_trials": len(test),
            "seconds": round(sum(answer.seconds for answer in answers.trials), 3),
            "server_sec": round(answers.server_sec, 3), "received_at": answers.received_at, "n_checks": len(checks),
            "n_failed": sum(not row["is_right"] for row in checks),
        }  # fmt: skip
        choices = [row for answer in test for row in _choices(answers, answer, key)] if is_ab else []
        asks_lq1 = key.settings.type == "rating" and LQ1 in {question.name for question in key.settings.questions}
        for table, rows in zip(
            tables,
            ListeningTables(
                _win_shares(answers, choices)
                if is_ab
                else [row for answer in test for row in _ratings(answers, answer, key)],
                [_listening_row(answers, answer, key) for answer in test] if asks_lq1 else [],
                choices,
                checks,
                [listener],
            ),
            strict=True,
        ):
            table.extend(rows)
    return tables


def _pair(file: str, key: ListeningKey) -> StudyPair:
    return key.pairs[PurePosixPath(file).name]


def _ratings(answers: Answers, answer: TrialAnswer, key: ListeningKey) -> Iterable[Row]:
    low, high = SCALES[key.settings.type]
    for question, values in answer.values.items():
        for place, (file, value) in enumerate(values.items()):
            pair = _pair(file, key)
            yield {
                "item": pair.item_id, "group": pair.group, "system": pair.system, "listener": answers.listener,
                "question": question, "rating": int(value), "scale": f"{low}-{high}", "block": answers.block,
                "order_index": answer.order_index, "place": place, "heard_sec": round(answer.heard_sec[file], 3),
            }  # fmt: skip


def _choices(answers: Answers, answer: TrialAnswer, key: ListeningKey) -> Iterable[Row]:
    first, second = (_pair(file, key) for file in answer.trial["stimuli"])
    for question, values in answer.values.items():
        yield {
            "item": first.item_id, "group": first.group, "first": first.system, "second": second.system,
            "listener": answers.listener, "question": question,
            "chosen": (first if values[answer.trial["stimuli"][0]] else second).system,
            "block": answers.block, "order_index": answer.order_index,
        }  # fmt: skip


def _win_shares(answers: Answers, choices: Sequence[Row]) -> list[Row]:
    """Return the share of its comparisons that a system won on an item."""
    wins: dict[tuple[str, str, str, str], list[float]] = defaultdict(list)
    for row in choices:
        for side in ("first", "second"):
            place = (row["item"], row["group"], row[side], row["question"])
            wins[place].append(float(row["chosen"] == row[side]))
    return [
        {"item": item, "group": group, "system": system, "listener": answers.listener, "question": question,
         "rating": sum(won) / len(won), "scale": "0-1", "block": answers.block}
        for (item, group, system, question), won in wins.items()
    ]  # fmt: skip


def _listening_row(answers: Answers, answer: TrialAnswer, key: ListeningKey) -> Row:
    (file,) = answer.trial["stimuli"]
    pair = _pair(file, key)
    ratings = {name: int(values[file]) for name, values in answer.values.items()}
    similarities = {name: value for name, value in ratings.items() if name.startswith(SIMILARITY)}
    return {
        "sample_id": pair.sample_id or f"{pair.item_id}: {pair.system}", "listener_id": answers.listener,
        "questionnaire_id": str(answers.block), "order_index": answer.order_index, LQ1: ratings[LQ1], **similarities,
    }  # fmt: skip


def ratings_of(rows: Iterable[Mapping[str, Any]]) -> tuple[Rating, ...]:
    """Return rows of the table ``ratings`` as `studies.ratings` has them: from 0 to 1."""
    ratings = []
    for row in rows:
        low, high = map(float, str(row["scale"]).split("-"))
        whose = {name: row[name] for name in ("item", "system", "listener")}
        rating = (row["rating"] - low) / (high - low)
        ratings.append(Rating(**whose, facet=row["question"], rating=rating, scaled=True))
    return tuple(ratings)
