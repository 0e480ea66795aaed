"""The evaluate module `edit_success`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.pipelines.edit_success import evaluate_edit_success

DESCRIPTION = "How much of what was asked of an edit is there: tempo, key, transposition, length, loudness and more."


class EditSuccess(mh.TargetsMetric):
    """See README.md beside this file."""

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, references, **options):
        originals, targets = mh.read_requests(references)
        return evaluate_edit_success(originals, mh.read_sources(predictions), targets, **options)
