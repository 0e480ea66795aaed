"""The evaluate module `self_replication_rate`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.pipelines.inpainting import evaluate_inpainting

DESCRIPTION = "Share of the measures of inpainted middles that are copies of a measure of their context."


class SelfReplicationRate(mh.SymbolicMetric):
    """See README.md beside this file."""

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, references, **options):
        contexts, middles = mh.read_pairs(references, predictions)
        return evaluate_inpainting(contexts, middles, metrics=["self_replication_rate"], **options)
