"""The evaluate module `raw_pitch_accuracy`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.pipelines.preservation import evaluate_preservation

DESCRIPTION = "Share of the melody of the original whose pitch edited music has at the same time."


class RawPitchAccuracy(mh.AudioMetric):
    """See README.md beside this file."""

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, references, **options):
        originals, edits = mh.read_sources(references), mh.read_sources(predictions)
        return evaluate_preservation(originals, edits, metrics=["raw_pitch_accuracy"], **options)
