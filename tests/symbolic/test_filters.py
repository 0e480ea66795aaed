import json

import pytest

from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.symbolic.filters import FILTERS, RECIPES, apply_filters, make_filter
from music_evals.symbolic.frame import FileFacts


def row(name, **facts):
    good = {
        "n_instruments": 1,
        "instrument_names": ("Tune",),
        "is_monophony": (True,),
        "n_overlaps": (0,),
        "is_4_4": True,
        "tsc": ("4/4",),
        "n_measures": 16,
        "hash": name,
    }
    return FileFacts(name, **(good | facts))


GOOD = row("good.mid")
BAD = {
    "readable": (row("x.mid", error="UnreadableFileError: x.mid: text"), "UnreadableFileError: x.mid: text"),
    "non_empty": (row("x.mid", is_empty=True), "no notes"),
    "unique": (row("x.mid", hash="good.mid"), "same bytes as good.mid"),
    "only_4_4": (row("x.mid", is_4_4=False, tsc=("4/4", "3/4")), "time signatures 4/4, 3/4"),
    "monophonic": (row("x.mid", n_overlaps=(2,)), "notes that sound with another in instrument 0 'Tune'"),
    "monophonic_onsets": (row("x.mid", is_monophony=(False,)), "notes that start together in instrument 0 'Tune'"),
    "n_instruments=1": (row("x.mid", n_instruments=5), "5 instruments"),
    "min_measures=16": (row("x.mid", n_measures=15), "15 measures"),
}


@pytest.mark.parametrize("name", BAD)
def test_each_filter_removes_what_it_says_and_says_why(name):
    bad, reason = BAD[name]
    report = apply_filters([GOOD, bad], [] if name == "readable" else [make_filter(name)])
    assert report.passed == (GOOD,)
    assert report.steps[-1].name == name
    assert report.steps[-1].removed == (("x.mid", reason),)


def test_no_time_signature_is_not_four_four():
    report = apply_filters([row("x.mid", is_4_4=False, tsc=())], [make_filter("only_4_4")])
    assert report.steps[-1].removed[0].reason == "time signatures missing"


def test_counts_add_up_and_order_matters():
    frame = [GOOD, *(bad for bad, _ in BAD.values())]
    names = list(BAD)[1:]
    report = apply_filters(frame, map(make_filter, names))
    assert report.passed == (GOOD,)
    before = len(frame)
    for step in report.steps:
        assert (step.n_before, step.n_kept) == (before, before - step.n_removed)
        before = step.n_kept
    # a file that is removed earlier is no twin of anybody
    twins = [row("a.mid", n_measures=3, hash="same"), row("b.mid", hash="same")]
    first_long, first_unique = (
        apply_filters(twins, map(make_filter, order))
        for order in (["min_measures", "unique"], ["unique", "min_measures"])
    )
    assert [row.filename for row in first_long.passed] == ["b.mid"]
    assert first_unique.passed == ()


def test_an_empty_frame():
    report = apply_filters([], [make_filter("unique")])
    assert [step.n_before for step in report.steps] == [0, 0]
    assert report.table().count("\n") == 2


def test_the_report_is_plain_json():
    report = apply_filters([GOOD, BAD["unique"][0]], [make_filter("unique")])
    assert json.loads(json.dumps(report.to_dict())) == {
        "kept": ["good.mid"],
        "steps": [
            {"name": "readable", "n_before": 2, "n_removed": 0, "n_kept": 2, "removed": []},
            {
                "name": "unique",
                "n_before": 2,
                "n_removed": 1,
                "n_kept": 1,
                "removed": [{"filename": "x.mid", "reason": "same bytes as good.mid"}],
            },
        ],
    }


def test_filters_by_name():
    for recipe in RECIPES.values():
        assert [make_filter(text).name for text in recipe] == list(recipe)
    assert {make_filter(name).name.partition("=")[0] for name in FILTERS} == set(FILTERS)
    with pytest.raises(UnknownNameError):
        make_filter("monophon")
    for text in ("unique=3", "min_measures=many", "min_measures=", "n_instruments=-1"):
        with pytest.raises(InvalidInputError, match="take"):
            make_filter(text)
