"""Run MSAF on samples: ``python msaf_worker.py "BOUNDARIES [LABELS]" SAMPLES.npy``; prints JSON.

A script for another process, and perhaps another interpreter: MSAF 0.1.80 expects a name that scipy has removed, and
writes files into its working folder.
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np

SAMPLE_RATE = 22050


def main() -> None:
    """Read the arguments and print the boundaries in seconds; with an algorithm for labels, these too."""
    warnings.simplefilter("ignore")
    import scipy
    import soundfile

    if not hasattr(scipy, "inf"):
        scipy.inf = np.inf
    import msaf

    algorithm, path = sys.argv[1:]
    soundfile.write("samples.wav", np.load(path, allow_pickle=False), SAMPLE_RATE, subtype="FLOAT")
    boundaries, _, labeller = algorithm.partition(" ")
    chosen = {"feature": "pcp", "labels_id": labeller} if labeller else {}
    times, labels = msaf.process("samples.wav", boundaries_id=boundaries, **chosen)
    boundary_times = [float(time) for time in times]
    json.dump([boundary_times, [str(label) for label in labels]] if labeller else boundary_times, sys.stdout)


if __name__ == "__main__":
    main()
