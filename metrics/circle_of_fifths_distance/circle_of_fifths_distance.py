"""The evaluate module `circle_of_fifths_distance`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.pipelines.preservation import evaluate_preservation

DESCRIPTION = "Steps on the circle of fifths between the keys of original and edited music, over 6."


class CircleOfFifthsDistance(mh.AudioMetric):
    """See README.md beside this file."""

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, references, **options):
        originals, edits = mh.read_sources(references), mh.read_sources(predictions)
        return evaluate_preservation(originals, edits, metrics=["circle_of_fifths_distance"], **options)
