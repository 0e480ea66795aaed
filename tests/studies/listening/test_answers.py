"""Answers of listening tests: what is possible becomes tidy tables, what is not is refused with its row."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from tests import listeners
from tests.listeners import QUALITY

from music_evals.errors import InvalidInputError, MusicEvalsError, PairCountError
from music_evals.pipelines.study_tables import LISTENING, read_table
from music_evals.studies.listening.answers import ListeningKey, check_answers, listening_tables, ratings_of
from music_evals.studies.listening.design import make_plans
from music_evals.studies.listening.screening import ANCHOR
from music_evals.studies.listening.settings import ListeningSettings, named_questions, style_questions
from music_evals.studies.pairs import REFERENCE, StudyPair

Test = tuple[list[dict[str, Any]], ListeningKey]


def made(*systems: str, **settings: Any) -> Test:
    """A test of two items, and its key."""
    pairs = [
        StudyPair(
            item_id=f"i{item}",
            group=f"g{item}",
            system=system,
            reference=f"audio/r{item}.flac",
            estimate=f"audio/{item}{system}.flac",
            sample_id=f"s{item}" if system == "x" else "",
        )
        for item in range(2)
        for system in systems
    ]
    chosen = ListeningSettings(**{"checks": 2, "listeners": 4, **settings})
    checks = {"c1.flac": 3, "c2.flac": 5}
    plans = make_plans(pairs, chosen, [f"audio/{name}" for name in checks])
    by_file = {pair.estimate.removeprefix("audio/"): pair for pair in pairs}
    seconds = dict.fromkeys([*by_file, *checks, "r0.flac", "r1.flac"], 10.0)
    return plans, ListeningKey(chosen, by_file, checks, seconds)


def sent(test: Test, slot: int = 0, *, tones: int | None = None) -> dict[str, Any]:
    return listeners.sent(*test, slot, tones=tones)


def tables_of(test: Test, **sent_by: dict[str, Any]) -> Any:
    plans, key = test
    answered = [check_answers(content, listener=name, plans=plans, key=key) for name, content in sent_by.items()]
    return listening_tables(answered, key)


def test_ratings_are_the_table_of_an_editing_test() -> None:
    test = made("x", "y", questions=named_questions("rating", ["LQ1"]) + style_questions(["bach", "jazz"]))
    tables = tables_of(test, ann=sent(test, 0), bob=sent(test, 1))
    table = read_table(tables.listening, LISTENING, table_name="listening")
    assert set(table) == {"sample_id", "listener_id", "questionnaire_id", "order_index", "LQ1", "sim_bach", "sim_jazz"}
    assert sorted(table["sample_id"]) == sorted(["s0", "s1", "i0: y", "i1: y"] * 2)
    assert table["order_index"].tolist() == [0, 1, 2, 3] * 2  # checks do not count
    by_sample = dict(zip(table["sample_id"].tolist(), table["LQ1"].tolist(), strict=True))
    assert by_sample == {"s0": 4, "s1": 4, "i0: y": 2, "i1: y": 2}
    assert len(tables.ratings) == 2 * 4 * 3
    ratings = ratings_of(tables.ratings)
    assert {(one.system, one.rating, one.scaled) for one in ratings} == {("x", 0.75, True), ("y", 0.25, True)}
    assert {row["is_right"] for row in tables.checks} == {True}
    assert [(row["listener"], row["n_trials"], row["n_failed"]) for row in tables.listeners] == [
        ("ann", 4, 0),
        ("bob", 4, 0),
    ]


def test_other_questions_make_no_such_table() -> None:
    test = made("x", "y", questions=named_questions("rating", ["melody"]))
    tables = tables_of(test, ann=sent(test))
    assert tables.listening == []
    assert {row["question"] for row in tables.ratings} == {"melody"}


def test_choices_become_shares_that_are_won() -> None:
    test = made(REFERENCE, "x", "y", type="ab", with_hidden_reference=True)
    tables = tables_of(test, ann=sent(test))
    assert len(tables.choices) == 2 * 3
    assert all(QUALITY[row["chosen"]] == max(QUALITY[row["first"]], QUALITY[row["second"]]) for row in tables.choices)
    assert {(row["system"], row["rating"]) for row in tables.ratings} == {(REFERENCE, 1.0), ("x", 0.5), ("y", 0.0)}
    assert len(ratings_of(tables.ratings)) == 6


def test_mushra_rates_everything_on_a_page() -> None:
    test = made(REFERENCE, "x", "y", ANCHOR, type="mushra")
    tables = tables_of(test, ann=sent(test))
    assert {(row["system"], row["rating"], row["scale"]) for row in tables.ratings} == {
        (name, quality * 20, "0-100") for name, quality in QUALITY.items()
    }
    assert sorted(row["place"] for row in tables.ratings) == sorted([0, 1, 2, 3] * 2)


def test_who_did_not_count_the_tones_is_seen() -> None:
    test = made("x", "y")
    tables = tables_of(test, ann=sent(test, tones=3))
    assert [row["is_right"] for row in sorted(tables.checks, key=lambda row: row["file"])] == [True, False]
    assert tables.listeners[0]["n_failed"] == 1


def test_nobody_answers_twice() -> None:
    test = made("x", "y")
    plans, key = test
    one = check_answers(sent(test), listener="ann", plans=plans, key=key)
    with pytest.raises(PairCountError, match="'ann' answered twice"):
        listening_tables([one, one], key)


def first_of(content: dict[str, Any], test: Test) -> tuple[dict[str, Any], str, str]:
    """The first page that is no check, with its question and its first sound."""
    number = next(n for n, trial in enumerate(test[0][0]["trials"]) if trial["type"] != "check")
    trial = test[0][0]["trials"][number]
    return content["trials"][number], trial["questions"][0], trial["stimuli"][0]


def change(name: str, value: Any) -> Callable[[dict[str, Any], str, str], None]:
    def of(row: dict[str, Any], question: str, file: str) -> None:
        if name == "answer":
            row["answers"][question][file] = value
        elif name == "heard":
            row["heard_sec"][file] = value
        else:
            row[name] = value

    return of


def choose(value: int) -> Callable[[dict[str, Any], str, str], None]:
    """Both sounds or neither."""

    def of(row: dict[str, Any], question: str, _: str) -> None:
        row["answers"][question] = dict.fromkeys(row["answers"][question], value)

    return of


FORGED: list[tuple[str, Callable[[dict[str, Any], str, str], Any], str]] = [
    ("rating", change("answer", 6), "LQ1 must be a number from 1 to 5, got 6"),
    ("rating", change("answer", 0), "from 1 to 5, got 0"),
    ("rating", change("answer", 2.5), "LQ1 must be a whole number from 1 to 5"),
    ("rating", change("answer", "4"), "got '4'"),
    ("rating", change("answer", True), "got True"),
    ("rating", change("answer", float("nan")), "got nan"),
    ("rating", change("heard", 8.0), "8.0 s of audio/.* were heard; an answer needs 9.0 s"),
    ("rating", change("heard", 12.0), "which lasts 10.0 s"),
    ("rating", change("heard", None), "heard_sec of .* must be a number"),
    ("rating", change("seconds", 3.0), "10.0 s were heard on a page that was open for 3.0 s"),
    ("rating", change("seconds", float("inf")), "seconds must be finite"),
    ("rating", change("answers", []), "expected `answers`, `heard_sec` and `seconds`"),
    ("rating", change("answers", {}), "no value for the question 'LQ1'"),
    ("rating", change("answers", {"LQ1": 4}), "LQ1: expected a value for each sound"),
    ("rating", lambda row, _, file: row["answers"].update(LQ2={file: 3}), "the question 'LQ2' was not asked"),
    ("rating", lambda row, question, file: row["answers"][question].pop(file), "no value for the sound"),
    ("rating", lambda row, *_: row["heard_sec"].update(other=1), "the sound 'other' was not played"),
    ("mushra", change("answer", 101), "overall must be a number from 0 to 100"),
    ("mushra", lambda row, _, file: row["heard_sec"].pop(f"audio/r{file[6]}.flac"), "no value for the sound"),
    ("ab", choose(1), "preference: one of the two sounds is chosen"),
    ("ab", choose(0), "preference: one of the two sounds is chosen"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "forge", "said"), FORGED)
def test_what_no_listener_can_have_sent(kind: str, forge: Callable[[dict[str, Any], str, str], Any], said: str) -> None:
    systems = (REFERENCE, "x", "y", ANCHOR) if kind == "mushra" else ("x", "y")
    test = made(*systems, type=kind)
    plans, key = test
    content = sent(test)
    check_answers(copy.deepcopy(content), listener="ann", plans=plans, key=key)
    row, question, file = first_of(content, test)
    forge(row, question, file)
    number = content["trials"].index(row) + 1
    with pytest.raises(InvalidInputError, match=f"ann, row {number}: .*{said}"):
        check_answers(content, listener="ann", plans=plans, key=key)


@pytest.mark.parametrize(
    ("content", "error", "said"),
    [
        (None, InvalidInputError, "ann: expected an object with `slot` and `trials`"),
        ({"slot": 0, "trials": {}}, InvalidInputError, "got no answers of this test"),
        ({"slot": 4, "trials": []}, InvalidInputError, "no plan 4; the test has 0 to 3"),
        ({"slot": True, "trials": []}, InvalidInputError, "no plan True"),
        ({"slot": "0", "trials": []}, InvalidInputError, "no plan '0'"),
        ({"slot": 0, "trials": [{}]}, PairCountError, "1 pages were answered, and the plan has 6"),
    ],
)
def test_what_is_no_answer_at_all(content: Any, error: type[MusicEvalsError], said: str) -> None:
    plans, key = made("x", "y")
    with pytest.raises(error, match=said):
        check_answers(content, listener="ann", plans=plans, key=key)


def test_a_plan_of_somebody_else_does_not_fit() -> None:
    test = made("x", "y", listeners=4)
    plans, key = test
    with pytest.raises(InvalidInputError, match=r"was not (played|asked) there"):
        check_answers({**sent(test, 0), "slot": 1}, listener="ann", plans=plans, key=key)
