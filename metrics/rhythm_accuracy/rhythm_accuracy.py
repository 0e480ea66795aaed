"""The evaluate module `rhythm_accuracy`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.metrics.inpainting import ACCURACY_VARIANTS
from music_evals.pipelines.inpainting import evaluate_inpainting

DESCRIPTION = "Share of the onsets common to reference and prediction that have the same duration."


class RhythmAccuracy(mh.SymbolicMetric):
    """See README.md beside this file."""

    variants = ACCURACY_VARIANTS

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, references, **options):
        contexts, middles = mh.read_pairs(references, predictions)
        return evaluate_inpainting(contexts, middles, metrics=["rhythm_accuracy"], **options)
