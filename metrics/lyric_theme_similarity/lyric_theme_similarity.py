"""The evaluate module `lyric_theme_similarity`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.pipelines.lyric_content import evaluate_themes

DESCRIPTION = "How near lyrics are in meaning to the theme that they were written for, by their embeddings."


class LyricThemeSimilarity(mh.ThemesMetric):
    """See README.md beside this file."""

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, references, **options):
        return evaluate_themes(mh.read_lyrics(references), mh.read_lyrics(predictions), **options)
