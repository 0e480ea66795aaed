"""The compact table of a README, from results made by hand."""

from typing import Any

from music_evals.benchmark.tasks.inpainting.report import compact_table


def cell(value: float | None, **more: Any) -> dict[str, Any]:
    return {"value": value, "low": None, "high": None, "n": 4, "n_defined": 3, **more}


TABLE = {
    "ranking": ["model", "copy_past"],
    "scores": {
        "model": {
            "note_f1": cell(0.5, low=0.4, high=0.6, test={"p_holm": 0.01, "difference": 0.25}),
            "groove_divergence": cell(0.125, low=0.1, high=0.2, null=0.0625),
            "inpainting_nll": cell(0.75),
        },
        "copy_past": {"note_f1": cell(0.25), "groove_divergence": cell(None)},
        "reference": {"note_f1": cell(1.0)},
    },
}
RESULTS = {
    "ranked_by": "note_f1",
    "best_baseline": {"note_f1": "copy_past"},
    "systems": {"reference": {"role": "control"}, "copy_past": {"role": "baseline"}, "model": {"role": "model"}},
    "scales": {
        "note_f1": {"title": "note F1", "direction": "higher"},
        "groove_divergence": {"title": "groove div.", "direction": "lower"},
        "inpainting_nll": {"title": "NLL", "direction": "lower"},
    },
}


def test_values_marks_and_what_stands_outside() -> None:
    assert compact_table(RESULTS, TABLE).splitlines() == [
        "| system | note F1 ↑ | groove div. ↓ | NLL ↓ |",
        "| --- | ---: | ---: | ---: |",
        "| `model` | 0.500+ (0.400 to 0.600) | 0.125 (floor 0.062) | 0.750 |",
        "| `copy_past` | 0.250= | n/a (3/4) |  |",
        "| *`reference`* | 1.000 |  |  |",
    ]


def test_sizes_stand_beside_the_names_and_scores_may_be_left_out() -> None:
    table = compact_table(RESULTS, TABLE, sizes={"model": "small, 2.11 M"}, without={"inpainting_nll"})
    assert table.splitlines()[::2] == [
        "| system | size | note F1 ↑ | groove div. ↓ |",
        "| `model` | small, 2.11 M | 0.500+ (0.400 to 0.600) | 0.125 (floor 0.062) |",
        "| *`reference`* |  | 1.000 |  |",
    ]
