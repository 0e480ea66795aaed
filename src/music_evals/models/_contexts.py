"""What every inpainter of this room does first: check the context and hide its middle."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from music_evals.annotations import MUSIB_LAYOUT, REST, ContextLayout, Tokens
from music_evals.symbolic.noteseq import check_contexts, mask_middle

__all__ = ["hide_middle"]


def hide_middle(contexts: npt.ArrayLike, layout: ContextLayout = MUSIB_LAYOUT) -> Tokens:
    """Return checked contexts with `annotations.MASK` in the middle, whatever stood there."""
    array = np.array(contexts)
    if array.ndim == 2 and array.shape[1] == layout.n_steps:
        array[:, layout.middle] = REST
    return mask_middle(check_contexts(array, layout), layout)
