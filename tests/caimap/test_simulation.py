"""Simulated annotators: the rules tell them apart, and a sample costs what it says."""

from __future__ import annotations

import math

import pytest

from music_evals.caimap.domain.simulation import HABITS, Plan, simulate
from music_evals.cli import main
from music_evals.errors import InvalidInputError

pytestmark = pytest.mark.slow

OF_SHARES = {name: HABITS[name] for name in ("careful", "hasty", "random")}


@pytest.fixture(scope="module")
def by_share():
    return {
        share: {
            found.habit: found
            for found in simulate(Plan(share=share, annotators=3, weeks=2, tasks=6, seed=1, habits=OF_SHARES))
        }
        for share in (0.0, 0.2, 1.0)
    }


def test_the_random_are_out_after_a_week_and_the_careful_stay(by_share) -> None:
    for found in by_share.values():
        assert list(found) == list(OF_SHARES)
        assert found["random"].excluded == (1.0, 1.0)
        assert found["random"].entered == 0
        assert math.isnan(found["random"].bad)
        assert (found["random"].caught, found["random"].songs, found["random"].cents) == (1.0, 6, 0)
        assert found["careful"].excluded == (0.0, 0.0)
        assert found["careful"].entered >= 0.9 * 3 * 2 * 6
        assert found["careful"].cents >= 0.9 * 2 * 6 * 2000


def test_scoring_all_lets_less_below_the_mark_in_than_scoring_none(by_share) -> None:
    assert by_share[0.0]["hasty"].scored == 0
    assert not by_share[1.0]["hasty"].bad > by_share[0.0]["hasty"].bad
    assert by_share[1.0]["careful"].scored == 3 * 2 * 6
    assert 0 < by_share[0.2]["careful"].scored < by_share[1.0]["careful"].scored


def test_those_who_skip_are_refused(by_share) -> None:
    found = by_share[0.2]
    assert found["careful"].refused < 0.1 < found["random"].refused


def test_cheats_are_caught_and_honest_people_are_not() -> None:
    found = {one.habit: one for one in simulate(Plan(annotators=2, weeks=1, tasks=10, seed=3))}
    honest = [name for name, habit in HABITS.items() if habit.honest]
    assert honest == ["careful", "quick expert", "slow phone", "interrupted"]
    assert len(HABITS) - len(honest) >= 10
    assert all(found[name].caught == 0 for name in honest)
    for name in ("idle pair", "idle, partner honest", "idle while it plays", "waits without playing", "script",
                 "labels of the last song", "random"):  # fmt: skip
        assert (found[name].caught, found[name].cents) == (1.0, 0), name


def test_a_seed_says_it_all() -> None:
    small = {"annotators": 2, "weeks": 1, "tasks": 2, "habits": OF_SHARES}
    assert str(simulate(Plan(seed=1, **small))) == str(simulate(Plan(seed=1, **small)))
    assert str(simulate(Plan(seed=1, **small))) != str(simulate(Plan(seed=2, **small)))


@pytest.mark.parametrize("wrong", [{"share": 1.1}, {"annotators": 1}, {"weeks": 0}, {"tasks": 0}])
def test_plans_that_cannot_be(wrong) -> None:
    with pytest.raises(InvalidInputError):
        Plan(**wrong)


def test_the_verb_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["caimap", "simulate", "--share", "0.2", "--annotators", "2", "--weeks", "1", "--tasks", "2"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert [row.split("\t")[:2] for row in rows] == [["0.2", habit] for habit in HABITS]
    assert {len(row.split("\t")) for row in (header, *rows)} == {11}
    assert main(["caimap", "simulate", "--share", "2"]) == 2
