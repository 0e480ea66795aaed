"""The evaluate module `musical_inpainting`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.pipelines.inpainting import evaluate_inpainting

DESCRIPTION = "Four note scores and three divergences of musical score inpainting, in one pass over the items."


class MusicalInpainting(mh.SymbolicMetric):
    """See README.md beside this file."""

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, references, **options):
        contexts, middles = mh.read_pairs(references, predictions)
        return evaluate_inpainting(contexts, middles, **options)
