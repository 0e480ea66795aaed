"""The evaluate module `tag_semantic_similarity`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.pipelines.tags import evaluate_tags

DESCRIPTION = "How near in meaning the tags of a song are to those that people gave it, by their embeddings."


class TagSemanticSimilarity(mh.TagsMetric):
    """See README.md beside this file."""

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, references, **options):
        return evaluate_tags(mh.read_tags(references), mh.read_tags(predictions), **options)
