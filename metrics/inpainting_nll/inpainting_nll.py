"""The evaluate module `inpainting_nll`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.pipelines.inpainting import evaluate_nll

DESCRIPTION = "Negative log-likelihood, in nats a step, that a model gives to the true middle."


class InpaintingNll(mh.LikelihoodMetric):
    """See README.md beside this file."""

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, **options):
        return evaluate_nll(mh.read_log_probabilities(predictions), **options)
