"""The evaluate module `position_score`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.pipelines.inpainting import evaluate_inpainting

DESCRIPTION = "F1 of the onset positions of the inpainted middle, averaged over the items."


class PositionScore(mh.SymbolicMetric):
    """See README.md beside this file."""

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, references, **options):
        contexts, middles = mh.read_pairs(references, predictions)
        return evaluate_inpainting(contexts, middles, metrics=["position_score"], **options)
