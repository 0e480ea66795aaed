"""The evaluate module `lyric_structure`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.pipelines.lyrics import evaluate_lyrics

DESCRIPTION = "How well generated lyrics keep the sections, lines, lengths and rhymes that were asked for."


class LyricStructure(mh.LyricsMetric):
    """See README.md beside this file."""

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, references, **options):
        return evaluate_lyrics(mh.read_lyrics(references), mh.read_lyrics(predictions), **options)
