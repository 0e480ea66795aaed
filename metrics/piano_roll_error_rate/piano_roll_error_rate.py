"""The evaluate module `piano_roll_error_rate`; the maths is in `music_evals`."""

import music_evals.hf as mh
from music_evals.pipelines.style_transfer.cell_prediction import evaluate_cells

DESCRIPTION = "Share of piano-roll cells that a model predicts wrongly, and five scores that must stand beside it."


class PianoRollErrorRate(mh.CellsMetric):
    """See README.md beside this file."""

    def _info(self):
        return self.make_info(DESCRIPTION)

    def _compute(self, predictions, references, **options):
        return evaluate_cells(*mh.read_rolls(references, predictions), **options)
