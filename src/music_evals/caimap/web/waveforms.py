"""The outline of a recording, as a player draws it: worked out once by the server, so that it is there at once.

Browsers would have to fetch and decode the whole song before they could draw anything.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Final

import numpy as np

from music_evals.audio.io import Audio, check_header, load_audio
from music_evals.files import Store

PARTS: Final = 1000
"""Parts of a recording, each drawn by its loudest sample: about as many as a wide page has pixels."""

FULL: Final = 255
"""What stands for full scale."""

VERSION: Final = 1
"""Goes up whenever the numbers change: what was kept before is then not found any more."""


def peaks_of(audio: Audio, parts: int = PARTS) -> list[int]:
    """Return the loudest sample of each part of a recording, in whole numbers up to `FULL`."""
    loud = np.abs(audio.samples)
    count = min(parts, len(loud))
    starts = np.arange(count) * len(loud) // count
    return [int(peak) for peak in np.rint(np.maximum.reduceat(loud, starts) * FULL)]


def kept_peaks(recording: str | os.PathLike[str], folder: str | os.PathLike[str]) -> list[int]:
    """Return `peaks_of` a file, from a folder where they were kept, or worked out and kept there."""
    store, path = Store(folder), Path(recording)
    check_header(path)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    key = {"what": "peaks", "sha256": digest, "parts": PARTS, "version": VERSION}
    known = store.get(key)
    if known is None:
        known = json.dumps(peaks_of(load_audio(path))).encode()
        store.put(key, known)
    peaks: list[int] = json.loads(known)
    return peaks
