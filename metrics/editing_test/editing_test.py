"""The evaluate module `editing_test`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.pipelines.editing_test import evaluate_answers

DESCRIPTION = "What editors and listeners answer of a model and of a baseline, with all tables of an editing test."


class EditingTest(mh.StudyMetric):
    """See README.md beside this file."""

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, samples=None, listening=None, **options):
        return evaluate_answers(mh.join_study(predictions, samples, listening), **options)
