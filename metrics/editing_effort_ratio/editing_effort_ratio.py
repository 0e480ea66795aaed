"""The evaluate module `editing_effort_ratio`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.pipelines.editing_test import evaluate_effort

DESCRIPTION = "How much work a model makes for those who edit what it wrote, of what a baseline makes for them."


class EditingEffortRatio(mh.StudyMetric):
    """See README.md beside this file."""

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, samples=None, listening=None, **options):
        return evaluate_effort(mh.join_study(predictions, samples, listening), **options)
