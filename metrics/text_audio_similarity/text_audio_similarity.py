"""The evaluate module `text_audio_similarity`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.pipelines.edits.text_audio import evaluate_text_similarity

DESCRIPTION = "How much an edit sounds like the text that was asked for, by an encoder of texts and recordings."


class TextAudioSimilarity(mh.CaptionsMetric):
    """See README.md beside this file."""

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, references, **options):
        originals, texts, before = mh.read_captions(references)
        edits = mh.read_sources(predictions)
        return evaluate_text_similarity(originals, edits, texts, source_texts=before, **options)
