"""The evaluate module `lpaps`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.pipelines.edits.text_audio import evaluate_lpaps

DESCRIPTION = "How far an edited recording went from its original, in the layers of CLAP, as editing papers report it."


class Lpaps(mh.NearnessMetric):
    """See README.md beside this file."""

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, references, **options):
        return evaluate_lpaps(mh.read_sources(references), mh.read_sources(predictions), **options)
