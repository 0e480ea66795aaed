"""Melody trackers that need a package of their own; each runs only when it is asked for by name.

============================ =========================================================================================
`track_basic_pitch`          basic-pitch (Bittner et al., ICASSP 2022), Apache-2.0: its network transcribes all notes,
                             and the highest one is taken for the melody
`track_torchcrepe`           CREPE (Kim et al., ICASSP 2018) as torchcrepe has it, MIT: for one voice alone
============================ =========================================================================================
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.annotations import F0Track
from music_evals.audio.io import SAMPLE_RATE, Audio
from music_evals.audio.spectra import HOP_LENGTH
from music_evals.errors import BackendError, InvalidAudioError, MissingBackendError, importing

FloatArray = npt.NDArray[np.float32]

BASIC_PITCH_VARIABLE = "MUSIC_EVALS_BASIC_PITCH"
"""Environment variable that names a file of basic-pitch's weights."""
BASIC_PITCH_FILE = "saved_models/icassp_2022/nmp.onnx"
# Its package demands TensorFlow and an old numpy on Linux; only the file of its weights is needed.
BASIC_PITCH_INSTALL = f"pip install --no-deps basic-pitch (or name its nmp.onnx in {BASIC_PITCH_VARIABLE})"

# Of the file: windows of 43,844 samples at 22,050 Hz give 172 frames of 256 samples; 15 at either end lack context.
WINDOW = 43844
FRAME = 256
SKIPPED = 15
FRAMES_PER_WINDOW = 142
STEP = WINDOW - 2 * SKIPPED * FRAME
LOWEST_KEY = 21  # MIDI, A0
NOTES = "StatefulPartitionedCall:1"  # the sustained ones; output 2 holds the onsets, output 0 the contours

BASS_KEYS = 15  # the lowest keys are never melody
MEDIAN_FRAMES = 9


def track_basic_pitch(audio: Audio, *, threshold: float = 0.375) -> F0Track:
    """Take the highest note of basic-pitch as the melody.

    The activations of its notes are smoothed by a median of nine frames of 11.6 ms, and so is the highest key above
    the threshold. In a rest the most active key is the guess.
    """
    from scipy.ndimage import median_filter

    # the activations of the 88 keys, shape (n, 88), in frames at `_nearest_frames`
    if audio.sample_rate != SAMPLE_RATE:
        raise InvalidAudioError(
            f"basic-pitch needs {SAMPLE_RATE} Hz, got {audio.sample_rate} Hz; load the recording with load_audio"
        )
    session = _basic_pitch_session(find_basic_pitch())
    samples = np.pad(audio.samples, (SKIPPED * FRAME, 0))
    starts = range(0, len(audio.samples), STEP)
    samples = np.pad(samples, (0, max(0, starts[-1] + WINDOW - len(samples))))
    pieces = [
        session.run([NOTES], {session.get_inputs()[0].name: samples[None, start : start + WINDOW, None]})[0]
        for start in starts
    ]
    notes = np.concatenate([piece[0, SKIPPED : SKIPPED + FRAMES_PER_WINDOW] for piece in pieces])
    smooth = median_filter(notes, size=(MEDIAN_FRAMES, 1), mode="nearest")[:, BASS_KEYS:]
    sounding = smooth >= threshold
    highest = smooth.shape[1] - 1 - sounding[:, ::-1].argmax(axis=1)
    voiced = sounding.any(axis=1)
    keys = median_filter(np.where(voiced, highest, -1), size=MEDIAN_FRAMES, mode="nearest")
    keys, voiced = np.where(keys >= 0, keys, smooth.argmax(axis=1)), keys >= 0
    hertz = 440.0 * 2.0 ** ((keys + BASS_KEYS + LOWEST_KEY - 69.0) / 12.0)
    n_frames = 1 + len(audio.samples) // HOP_LENGTH
    times_sec = _grid(audio, n_frames)
    nearest = _nearest_frames(times_sec * audio.sample_rate, len(keys))
    return F0Track(times_sec, np.where(voiced, hertz, -hertz)[nearest])


def _nearest_frames(positions: npt.NDArray[np.float64], n: int) -> npt.NDArray[np.int64]:
    """Return the frame nearest to each position in samples; every window begins anew, 141.27 frames after the last."""
    window = (positions // STEP).astype(np.int64)
    inside = np.rint((positions - window * STEP) / FRAME).astype(np.int64)
    nearest: npt.NDArray[np.int64] = np.minimum(
        window * FRAMES_PER_WINDOW + np.minimum(inside, FRAMES_PER_WINDOW - 1), n - 1
    )
    return nearest


def find_basic_pitch() -> Path:
    """Return the file of basic-pitch's weights: the one that MUSIC_EVALS_BASIC_PITCH names, else the package's.

    The package is looked up, not imported.
    """
    named = os.environ.get(BASIC_PITCH_VARIABLE)
    if named and Path(named).is_file():
        return Path(named)
    package = importlib.util.find_spec("basic_pitch")
    for folder in package.submodule_search_locations or () if package else ():
        if (Path(folder) / BASIC_PITCH_FILE).is_file():
            return Path(folder) / BASIC_PITCH_FILE
    purpose = f"the melody by basic-pitch (no file {named})" if named else "the melody by basic-pitch"
    raise MissingBackendError("basic-pitch", "", purpose, install=BASIC_PITCH_INSTALL)


@functools.cache
def _basic_pitch_session(path: Path) -> Any:
    with importing("audio", "the melody by basic-pitch"):
        import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def track_torchcrepe(audio: Audio, *, model: str = "full", threshold: float = 0.5) -> F0Track:
    """Follow a voice alone with CREPE."""
    try:
        torchcrepe: Any = importlib.import_module("torchcrepe")
    except ImportError as error:
        install = "pip install torchcrepe"
        raise MissingBackendError("torchcrepe", "", "the melody by CREPE", install=install) from error
    torch: Any = sys.modules["torch"]  # torchcrepe brought it
    try:
        pitch, periodicity = torchcrepe.predict(
            torch.from_numpy(audio.samples.copy())[None],
            audio.sample_rate,
            HOP_LENGTH,
            fmin=50.0,
            fmax=1975.0,
            model=model,
            return_periodicity=True,
            device="cpu",
        )
    except (RuntimeError, ValueError) as error:
        raise BackendError(f"torchcrepe failed: {error}") from error
    hertz, voiced = pitch[0].numpy().astype(np.float64), periodicity[0].numpy() >= threshold
    return F0Track(_grid(audio, len(hertz)), np.where(voiced, hertz, -hertz))


def _grid(audio: Audio, n_frames: int) -> npt.NDArray[np.float64]:
    times_sec: npt.NDArray[np.float64] = np.arange(n_frames, dtype=np.float64) * (HOP_LENGTH / audio.sample_rate)
    return times_sec
