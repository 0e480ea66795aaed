"""The evaluate module `consonance_pitch_accuracy`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.pipelines.inpainting import evaluate_inpainting

DESCRIPTION = "Pitch accuracy that gives a wrong pitch the consonance of its interval with the true one."


class ConsonancePitchAccuracy(mh.SymbolicMetric):
    """See README.md beside this file."""

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, references, **options):
        contexts, middles = mh.read_pairs(references, predictions)
        return evaluate_inpainting(contexts, middles, metrics=["consonance_pitch_accuracy"], **options)
