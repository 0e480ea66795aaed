"""The evaluate module `interval_lcs`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.pipelines.preservation import evaluate_preservation

DESCRIPTION = "Share of melodic intervals that original and edited music have in common in the same order."


class IntervalLcs(mh.AudioMetric):
    """See README.md beside this file."""

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, references, **options):
        originals, edits = mh.read_sources(references), mh.read_sources(predictions)
        return evaluate_preservation(originals, edits, metrics=["interval_lcs"], **options)
