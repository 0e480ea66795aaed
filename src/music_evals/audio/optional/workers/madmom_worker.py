"""Run one model of madmom on samples: ``python madmom_worker.py TASK SAMPLES``; prints JSON.

The samples are an array at 44.1 kHz (.npy), or a WAV file that madmom reads and resamples as it does with anybody's.

A script for another process, and perhaps another interpreter: madmom 0.16.1 expects names that Python 3.10 and numpy 2
have removed, and they are given back here rather than in the process of the user.
"""

from __future__ import annotations

import collections
import collections.abc
import json
import sys
import warnings

import numpy as np

SAMPLE_RATE = 44100
BEAT_FRAMES_PER_SECOND = 100


def give_back_removed_names() -> None:
    """Put back what Python and numpy have removed."""
    for name in ("Callable", "Iterable", "Mapping", "MutableMapping", "MutableSequence", "Sequence"):
        setattr(collections, name, getattr(collections.abc, name))
    for name, kind in (("float", float), ("int", int), ("complex", complex), ("object", object)):
        if name not in vars(np):
            setattr(np, name, kind)


def chords(signal: object) -> list[tuple[float, float, str]]:
    """Return start, end and label of each chord: CNN features and a CRF, 25 classes."""
    from madmom.features.chords import CNNChordFeatureProcessor, CRFChordRecognitionProcessor

    segments = CRFChordRecognitionProcessor()(CNNChordFeatureProcessor()(signal))
    return [(float(start), float(end), str(label)) for start, end, label in segments]


def beats(signal: object) -> list[float]:
    """Return beat times: a recurrent network and a dynamic Bayesian network."""
    from madmom.features.beats import DBNBeatTrackingProcessor, RNNBeatProcessor

    tracker = DBNBeatTrackingProcessor(fps=BEAT_FRAMES_PER_SECOND)
    return [float(time) for time in tracker(RNNBeatProcessor()(signal))]


TASKS = {"chords": chords, "beats": beats}


def main() -> None:
    """Read the arguments and print the result."""
    warnings.simplefilter("ignore")
    give_back_removed_names()
    from madmom.audio.signal import Signal

    task, path = sys.argv[1:]
    if path.endswith(".npy"):
        samples = Signal(np.load(path, allow_pickle=False), sample_rate=SAMPLE_RATE, num_channels=1)
    else:
        samples = path
    json.dump(TASKS[task](samples), sys.stdout)


if __name__ == "__main__":
    main()
