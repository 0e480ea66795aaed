"""The evaluate module `ssm_correlation`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.pipelines.preservation import evaluate_preservation

DESCRIPTION = "Correlation of the self-similarity of original and edited music."


class SsmCorrelation(mh.AudioMetric):
    """See README.md beside this file."""

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, references, **options):
        originals, edits = mh.read_sources(references), mh.read_sources(predictions)
        return evaluate_preservation(originals, edits, metrics=["ssm_correlation"], **options)
