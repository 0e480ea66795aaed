"""The evaluate module `note_f1`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.pipelines.inpainting import evaluate_inpainting

DESCRIPTION = "F1 of the notes of the inpainted middle; a note is right if onset and pitch are."


class NoteF1(mh.SymbolicMetric):
    """See README.md beside this file."""

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, references, **options):
        contexts, middles = mh.read_pairs(references, predictions)
        return evaluate_inpainting(contexts, middles, metrics=["note_f1"], **options)
