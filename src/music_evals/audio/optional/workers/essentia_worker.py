"""Run one algorithm of essentia on samples at 44.1 kHz: ``python essentia_worker.py TASK SAMPLES.npy``; prints JSON."""

from __future__ import annotations

import json
import sys

import numpy as np


def main() -> None:
    """Read the arguments and print the result."""
    import essentia
    import essentia.standard as es

    essentia.log.infoActive = False
    tasks = {
        "key": lambda samples: es.KeyExtractor()(samples)[:2],
        "beats": lambda samples: es.RhythmExtractor2013(method="multifeature")(samples)[1].tolist(),
        "melodia": lambda samples: es.PredominantPitchMelodia()(es.EqualLoudness()(samples))[0].tolist(),
    }
    task, path = sys.argv[1:]
    json.dump(tasks[task](np.load(path, allow_pickle=False)), sys.stdout)


if __name__ == "__main__":
    main()
