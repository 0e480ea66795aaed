"""The report of an editing test has the published tables at its end, as they are printed."""

from __future__ import annotations

import numpy as np

from music_evals.pipelines.editing_test import evaluate_editing_test
from music_evals.studies.editing.report import report_text
from music_evals.studies.editing.simulation import StudyDesign, simulate_study


def test_the_published_tables_stand_at_the_end_of_the_report() -> None:
    tables = simulate_study(StudyDesign(n_listeners=0), rng=np.random.default_rng(0))
    own, heading, printed = report_text(evaluate_editing_test(tables)).partition("## As published")
    assert heading
    assert "published" not in own
    assert "| to jazz, baseline | 1.89 ± 0.83 | 2.56 ± 0.98 | 2.28 ± 0.96 | 2.15 ± 0.31 |" in printed
    assert "| to jazz | 0.77 ± 0.26 | 0.59 ± 0.27 | 0.65 ± 0.37 |" in printed
    assert "| ratio_keyboard | delta_EQ3 | -0.76\\*\\* |" in printed
    assert "| delta_EQ1 | delta_LQ1 | 0.35 |" in printed
