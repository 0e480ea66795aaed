"""The evaluate module `groove_divergence`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.pipelines.inpainting import evaluate_inpainting

DESCRIPTION = (
    "Jensen-Shannon divergence between true and inpainted middles in how alike their onset patterns are "
    "to their context's."
)


class GrooveDivergence(mh.SymbolicMetric):
    """See README.md beside this file."""

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, references, **options):
        contexts, middles = mh.read_pairs(references, predictions)
        return evaluate_inpainting(contexts, middles, metrics=["groove_divergence"], **options)
