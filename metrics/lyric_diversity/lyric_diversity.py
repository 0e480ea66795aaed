"""The evaluate module `lyric_diversity`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.pipelines.lyric_content import evaluate_diversity

DESCRIPTION = "How much generated lyrics repeat themselves within their sections, beside the range of lyrics by people."


class LyricDiversity(mh.WordsMetric):
    """See README.md beside this file."""

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, references, **options):
        return evaluate_diversity(mh.read_lyrics(references), mh.read_lyrics(predictions), **options)
