"""The evaluate module `lyric_wordlikeness`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.pipelines.lyric_content import evaluate_wordlikeness

DESCRIPTION = "How far the share of Chinese characters that stand in words is outside of what people write in lyrics."


class LyricWordlikeness(mh.WordsMetric):
    """See README.md beside this file."""

    paper = mh.text.CITATION  # of the songs that the range of people is from

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, references, **options):
        return evaluate_wordlikeness(mh.read_lyrics(references), mh.read_lyrics(predictions), **options)
