"""Plans of listening tests: everybody hears what they should, balanced, and nothing says who made it."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from typing import Any

import pytest

from music_evals.errors import InvalidInputError, MusicEvalsError, NoDataError, PairCountError, UnknownNameError
from music_evals.studies.listening.design import make_plans, order_of_items
from music_evals.studies.listening.screening import ANCHOR
from music_evals.studies.listening.settings import (
    ListeningSettings,
    Question,
    check_pairs_of_test,
    named_questions,
    page_settings,
    style_questions,
)
from music_evals.studies.pairs import REFERENCE, StudyPair


def pairs_of(n_items: int, *systems: str, group: int = 1) -> list[StudyPair]:
    return [
        StudyPair(
            item_id=f"item {item}",
            group=f"song {item // group}",
            system=system,
            reference=f"audio/r{item}.flac",
            estimate=f"audio/{hashlib.sha256(f'{item} {system}'.encode()).hexdigest()[:16]}.flac",
        )
        for item in range(n_items)
        for system in systems
    ]


def trials_of(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [trial for trial in plan["trials"] if trial["type"] != "check"]


@pytest.mark.parametrize("n_items", [1, 2, 5, 6])
def test_rows_of_the_square(n_items: int) -> None:
    rows = [order_of_items(n_items, row) for row in range(n_items)]
    assert all(sorted(column) == list(range(n_items)) for column in (*rows, *zip(*rows, strict=True)))
    if n_items % 2 == 0:
        follows = Counter(pair for row in rows for pair in itertools.pairwise(row))
        assert set(follows.values()) == {1}  # each follows each other once
        assert len(follows) == n_items * (n_items - 1)


@pytest.mark.parametrize(("n_items", "systems"), [(4, ("a", "b")), (3, ("a", "b", "c")), (5, ("a", "b"))])
def test_each_sound_stands_at_each_place_once(n_items: int, systems: tuple[str, ...]) -> None:
    pairs = pairs_of(n_items, *systems)
    n = n_items * len(systems)
    plans = make_plans(pairs, ListeningSettings(listeners=n, checks=0))
    played = [[trial["stimuli"][0] for trial in plan["trials"]] for plan in plans]
    assert {frozenset(order) for order in played} == {frozenset(pair.estimate for pair in pairs)}
    assert all(len(set(column)) == n for column in zip(*played, strict=True))
    items = {pair.estimate: pair.item_id for pair in pairs}
    for order in played:  # all items before one comes again
        assert len({items[file] for file in order[:n_items]}) == n_items
        assert all(items[one] != items[other] for one, other in itertools.pairwise(order))


def test_blocks_share_the_items_and_keep_all_systems_together() -> None:
    pairs = pairs_of(12, "a", "b", group=3)
    settings = ListeningSettings(listeners=12, blocks=3, checks=0, seed=5)
    plans = make_plans(pairs, settings)
    counts = Counter(trial["stimuli"][0] for plan in plans for trial in plan["trials"])
    assert set(counts.values()) == {4}  # each sound equally often
    assert len(counts) == 24
    by_file = {pair.estimate: pair for pair in pairs}
    for plan in plans:
        heard = [by_file[trial["stimuli"][0]] for trial in plan["trials"]]
        assert len(heard) == 8
        assert Counter(pair.system for pair in heard) == {"a": 4, "b": 4}
        assert len({pair.item_id for pair in heard}) == 4
        assert len({pair.group for pair in heard}) == 4  # a song in every block
        assert plan["block"] == plan["slot"] % 3


def test_sides_of_two_sounds_are_balanced_and_drawn() -> None:
    pairs = pairs_of(4, "a", "b", "c")
    plans = make_plans(pairs, ListeningSettings(type="ab", listeners=24, checks=0))
    first = Counter((trial["stimuli"][0], trial["stimuli"][1]) for plan in plans for trial in plan["trials"])
    assert set(first.values()) == {12}
    assert len(first) == 4 * 3 * 2
    systems = {pair.estimate: pair.system for pair in pairs}
    # the side is not tied to the place in the plan
    places = Counter(
        (number % 2, systems[trial["stimuli"][0]] < systems[trial["stimuli"][1]])
        for plan in plans
        for number, trial in enumerate(plan["trials"])
    )
    assert min(places.values()) > 0.35 * 24 * 12 / 2
    only = make_plans(pairs, ListeningSettings(type="ab", listeners=2, checks=0, against="b"))
    assert len(only[0]["trials"]) == 8
    assert all("b" in {systems[file] for file in trial["stimuli"]} for trial in only[0]["trials"])


def test_a_page_of_mushra_holds_everything_at_each_place() -> None:
    pairs = pairs_of(3, REFERENCE, "a", "b", ANCHOR)
    settings = ListeningSettings(type="mushra", questions=named_questions("mushra", ["LQ1", "overall"]), listeners=12)
    plans = make_plans(pairs, settings, ["audio/c1.flac", "audio/c2.flac", "audio/c3.flac"])
    systems = {pair.estimate: pair.system for pair in pairs}
    places = Counter()
    for plan in plans:
        for trial in trials_of(plan):
            assert [systems[file] for file in sorted(trial["stimuli"], key=systems.get)] == [
                "a",
                ANCHOR,
                "b",
                REFERENCE,
            ]
            assert trial["reference"] == next(pair.reference for pair in pairs if pair.estimate in trial["stimuli"])
            places.update((systems[file], place) for place, file in enumerate(trial["stimuli"]))
        questions = [trial["questions"] for trial in trials_of(plan)]
        assert questions[:3] == [questions[0]] * 3  # one question for all items, then the other
        assert questions[3:] == [questions[3]] * 3 != questions[:3]
    assert set(places.values()) == {12 * 6 / 4}


def test_checks_are_spread() -> None:
    files = [f"audio/check{n}.flac" for n in range(3)]
    plans = make_plans(pairs_of(6, "a", "b"), ListeningSettings(listeners=12), files)
    places, orders = set(), set()
    for plan in plans:
        checks = [(place, trial) for place, trial in enumerate(plan["trials"]) if trial["type"] == "check"]
        assert len(checks) == 3
        assert checks[0][0] > 0
        for number, (place, trial) in enumerate(checks):
            assert 4 * number < place - number <= 4 * (number + 1)
            assert trial["questions"] == ["tones"]
        places.add(tuple(place for place, _ in checks))
        orders.add(tuple(trial["stimuli"][0] for _, trial in checks))
    assert len(places) > 4
    assert len(orders) > 2
    with pytest.raises(NoDataError, match="3 attention checks, and 1 files"):
        make_plans(pairs_of(6, "a"), ListeningSettings(), files[:1])


def test_what_participants_get_names_nobody() -> None:
    pairs = pairs_of(4, "secret one", "secret two")
    settings = ListeningSettings(questions=named_questions("rating", ["LQ1"]) + style_questions(["bach"]), seed=77_123)
    text = json.dumps([page_settings(settings), make_plans(pairs, settings, ["audio/c.flac"] * 3)])
    for word in ("secret", "item ", "song ", "77123", "seed"):
        assert word not in text
    assert [one["name"] for one in page_settings(settings)["questions"]] == ["LQ1", "sim_bach"]


def test_plans_come_from_the_seed() -> None:
    pairs = pairs_of(4, "a", "b")
    plans = [make_plans(pairs, ListeningSettings(checks=0, seed=seed)) for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]


def test_settings_are_read_back() -> None:
    settings = ListeningSettings(type="mushra", questions=(Question("mine", "How odd?"),), systems=("a",), seed=4)
    assert ListeningSettings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings
    with pytest.raises(InvalidInputError, match="no settings of a listening test"):
        ListeningSettings.from_dict({"type": "ab"})


@pytest.mark.parametrize(
    ("settings", "pairs", "error", "said"),
    [
        ({"type": "ab"}, pairs_of(3, "a"), PairCountError, "there is only 'a'; add another"),
        ({"type": "ab"}, pairs_of(3, REFERENCE, "a"), PairCountError, "or `with_hidden_reference`"),
        ({"type": "mushra"}, pairs_of(3, REFERENCE, "a"), InvalidInputError, "mushra needs an anchor"),
        ({}, pairs_of(3, REFERENCE), NoDataError, "no system to be rated"),
        ({}, [], NoDataError, "no pairs"),
        ({"blocks": 4}, pairs_of(3, "a"), PairCountError, "3 items do not fill 4 blocks; add items"),
        ({}, [*pairs_of(2, "a", "b"), *pairs_of(3, "a")[2:]], PairCountError, "row 5: item 'item 2' has no b"),
        ({"systems": ("aa",)}, pairs_of(3, "a"), UnknownNameError, "aa"),
        ({"type": "ab", "against": "z"}, pairs_of(3, "a", "b"), UnknownNameError, "z"),
        (
            {"type": "mushra"},
            pairs_of(2, REFERENCE, ANCHOR, *(f"s{n}" for n in range(11))),
            PairCountError,
            "13 sounds do not fit",
        ),
    ],
)  # fmt: skip
def test_a_table_that_cannot_carry_the_design(
    settings: dict[str, Any], pairs: list[StudyPair], error: type[MusicEvalsError], said: str
) -> None:
    with pytest.raises(error, match=said):
        make_plans(pairs, ListeningSettings(**{"checks": 0, **settings}))


def test_an_anchor_with_the_notes_of_the_reference_is_no_anchor_for_harmony() -> None:
    settings = ListeningSettings(type="mushra", questions=named_questions("mushra", ["overall", "harmony"]))
    with pytest.raises(InvalidInputError, match="it cannot anchor harmony; give each item a system 'anchor'"):
        check_pairs_of_test(pairs_of(3, "a"), settings)
    check_pairs_of_test(pairs_of(3, "a", ANCHOR), settings)
    check_pairs_of_test(pairs_of(3, "a"), ListeningSettings(type="mushra"))


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"type": "abx"}, UnknownNameError, "abx"),
        ({"type": "abx", "questions": named_questions("ab")}, UnknownNameError, "abx"),
        ({"listeners": 7, "blocks": 3}, InvalidInputError, "plan 9 `listeners`"),
        ({"listeners": 0}, InvalidInputError, "`listeners` must be 1 to 10,000, got 0"),
        ({"least_heard": 0.0}, InvalidInputError, "`least_heard`"),
        ({"anchor_hz": 10.0}, InvalidInputError, "`anchor_hz`"),
        ({"against": "a"}, InvalidInputError, "`against` is for the type ab"),
        ({"questions": named_questions("rating", ["LQ1", "LQ1"])}, InvalidInputError, "asked once"),
    ],
)
def test_settings_out_of_range(given: dict[str, Any], error: type[MusicEvalsError], said: str) -> None:
    with pytest.raises(error, match=said):
        ListeningSettings(**given)


def test_questions() -> None:
    assert [one.name for one in named_questions("rating")] == ["LQ1"]
    assert [one.name for one in named_questions("ab", ["harmony"])] == ["harmony"]
    assert ListeningSettings(questions=named_questions("rating", ["melody"])).is_reference_open
    assert not ListeningSettings().is_reference_open
    with pytest.raises(UnknownNameError, match="loudness"):
        named_questions("rating", ["loudness"])
    for name, text in (("tones", "x"), ("<b>", "x"), ("", "x"), ("a", " ")):
        with pytest.raises(InvalidInputError):
            Question(name, text)
