"""The evaluate module `major_minor_score`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.pipelines.preservation import evaluate_preservation

DESCRIPTION = "Share of time during which edited music has the same major or minor chord as its original."


class MajorMinorScore(mh.AudioMetric):
    """See README.md beside this file."""

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, references, **options):
        originals, edits = mh.read_sources(references), mh.read_sources(predictions)
        return evaluate_preservation(originals, edits, metrics=["major_minor_score"], **options)
