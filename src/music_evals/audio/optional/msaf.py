"""Backend of MSAF (MIT): the segments of the official code, in a process of their own.

MSAF 0.1.80 keeps the features of a recording in a file in its working folder and takes them for any other recording of
that name and length. Here every recording has a folder of its own.
"""

from __future__ import annotations

import numpy as np

from music_evals.annotations import Segments
from music_evals.audio.io import Audio
from music_evals.audio.optional._process import run_worker

__all__ = ["segment_sf"]


def segment_sf(audio: Audio) -> Segments:
    """Return the segments by MSAF's structural features ("sf") without a labeller: every label is "-1".

    So the adjusted Rand index says nothing of them.

    Boundaries outside the recording are left out; 0 and the end are added, as the official code does.

    Raises
    ------
    BackendError
        MSAF failed on the recording.

    """
    rows = run_worker("msaf", "sf", audio)
    inner = [time for time in sorted(set(rows)) if 0 < time < audio.duration_sec]
    bounds = np.array([0.0, *inner, audio.duration_sec])
    return Segments(np.stack([bounds[:-1], bounds[1:]], axis=1), ("-1",) * (len(bounds) - 1))
