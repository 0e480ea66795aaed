"""What the page of a listening test counts, demands and sends."""

from __future__ import annotations

from typing import Any

import pytest

RATING = {"type": "rating", "stimuli": ["a"], "reference": None, "questions": ["LQ1", "sim_bach"]}
AB = {"type": "ab", "stimuli": ["a", "b"], "reference": None, "questions": ["preference"]}
MUSHRA = {"type": "mushra", "stimuli": ["a", "b", "c"], "reference": "r", "questions": ["overall"]}
CHECK = {"type": "check", "stimuli": ["a"], "reference": None, "questions": ["tones"]}


@pytest.mark.parametrize(
    ("spans", "span", "expected"),
    [
        ([], (1, 2), [[1, 2]]),
        ([[1, 2]], (3, 4), [[1, 2], [3, 4]]),
        ([[3, 4]], (1, 2), [[1, 2], [3, 4]]),
        ([[1, 2], [3, 4]], (2, 3), [[1, 4]]),  # what touches is one
        ([[1, 2]], (1.2, 1.5), [[1, 2]]),  # heard twice counts once
        ([[1, 2], [5, 6], [8, 9]], (1.5, 8.5), [[1, 9]]),
        ([[1, 2]], (3, 3), [[1, 2]]),
        ([[1, 2]], (3, 2), [[1, 2]]),
    ],
)
def test_spans(call: Any, spans: Any, span: Any, expected: Any) -> None:
    assert call("listeningTest")("addSpan", spans, *span) == expected


def test_what_is_played_between_two_looks(call: Any) -> None:
    assert call("listeningTest")("played", 1.0, 1.5, 10.0) == [[1.0, 1.5]]
    assert call("listeningTest")("played", 9.8, 0.2, 10.0) == [[9.8, 10.0], [0, 0.2]]


@pytest.mark.parametrize(
    ("trial", "labels", "tracks"),
    [
        (RATING, ["Sound"], ["a"]),
        ({**RATING, "reference": "r"}, ["Original", "Sound"], ["r", "a"]),
        (AB, ["A", "B"], ["a", "b"]),
        (MUSHRA, ["Reference", "A", "B", "C"], ["r", "a", "b", "c"]),
    ],
)
def test_names_of_sounds_say_nothing(call: Any, trial: Any, labels: Any, tracks: Any) -> None:
    assert call("listeningTest")("labelsOf", trial) == labels
    assert call("listeningTest")("tracksOf", trial) == tracks


@pytest.mark.parametrize(
    ("key", "trial", "track"),
    [("a", AB, 0), ("b", AB, 1), ("c", AB, -1), ("o", AB, -1), ("o", MUSHRA, 0), ("a", MUSHRA, 1), ("c", MUSHRA, 3),
     ("d", MUSHRA, -1), ("tab", MUSHRA, -1), ("1", MUSHRA, -1), ("é", MUSHRA, -1)],
)  # fmt: skip
def test_keys_choose_sounds(call: Any, key: str, trial: Any, track: int) -> None:
    assert call("listeningTest")("trackOfKey", key, trial) == track


def test_enough_must_be_heard_of_each_sound(call: Any) -> None:
    of = call("listeningTest")
    row = of("newRow", MUSHRA)
    assert row == {"answers": {"overall": {}}, "heard": {name: [] for name in "rabc"}, "lengths": [], "seconds": 0}
    assert of("unheard", MUSHRA, row, 0.25) == ["r", "a", "b", "c"]  # nothing is loaded
    row["heard"] = {"r": [[0, 3]], "a": [[0, 1], [5, 6.5]], "b": [[0, 1]], "c": [[0, 2.47]]}
    assert of("unheard", MUSHRA, row, 0.25) == ["r", "a", "b", "c"]
    row["lengths"] = [10, 10, 10, 10]
    assert of("unheard", MUSHRA, row, 0.25) == ["b"]
    assert of("unheard", MUSHRA, {**row, "lengths": [10, 10, 4, 10]}, 0.25) == []
    assert of("unheard", MUSHRA, row, 1) == ["r", "a", "b", "c"]


def test_answers(call: Any) -> None:
    of = call("listeningTest")
    row = of("newRow", RATING)
    assert of("unanswered", RATING, row) == ["LQ1", "sim_bach"]
    row = of("answered", RATING, row, "LQ1", "a", 4)
    assert of("unanswered", RATING, row) == ["sim_bach"]
    row = of("answered", RATING, of("answered", RATING, row, "sim_bach", "a", 1), "LQ1", "a", 5)
    assert row["answers"] == {"LQ1": {"a": 5}, "sim_bach": {"a": 1}}
    assert of("unanswered", RATING, row) == []
    # a choice can be changed, and is always one of two
    chosen = of("answered", AB, of("answered", AB, of("newRow", AB), "preference", "a", 1), "preference", "b", 1)
    assert chosen["answers"] == {"preference": {"a": 0, "b": 1}}
    placed = of("answered", MUSHRA, of("newRow", MUSHRA), "overall", "b", 0)
    assert of("unanswered", MUSHRA, placed) == ["overall"]  # a slider at 0 is an answer, and two are left


def test_what_is_sent(call: Any) -> None:
    plan = {"slot": 7, "trials": [RATING, CHECK]}
    rows = [
        {"answers": {"LQ1": {"a": 3}}, "heard": {"a": [[0, 1.23456], [2, 3]]}, "lengths": [3], "seconds": 9.87654},
        {"answers": {"tones": {"a": 2}}, "heard": {"a": []}, "lengths": [], "seconds": 0},
    ]
    assert call("listeningTest")("result", plan, rows) == {
        "slot": 7,
        "trials": [
            {"answers": {"LQ1": {"a": 3}}, "heard_sec": {"a": 2.235}, "seconds": 9.877},
            {"answers": {"tones": {"a": 2}}, "heard_sec": {"a": 0}, "seconds": 0},
        ],
    }


def test_kept_work_goes_on_where_it_belongs(call: Any) -> None:
    of, plan = call("listeningTest"), {"slot": 7, "trials": [RATING, CHECK]}
    done, half = {"heard": {"a": [[0, 1]]}}, {"heard": {"a": []}}
    for rows, row in (([done], half), ([done], None), ([], half), ([done, done], None)):
        assert of("resumed", plan, {"slot": 7, "rows": rows, "row": row}) == {"rows": rows, "row": row}
    kept = {"slot": 7, "rows": [done], "row": half}
    other = {"heard": {"of another test": []}}
    wrong = ({"slot": 8}, {"rows": None}, {"rows": [done] * 3}, {"rows": [other]}, {"row": other}, {"row": {}})
    for saved in (None, *({**kept, **change} for change in wrong)):
        assert of("resumed", plan, saved) == {"rows": [], "row": None}
