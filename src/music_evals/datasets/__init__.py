"""Builders of the data sets."""

from music_evals.deprecation import moved_modules

moved_modules(
    "music_evals",
    {
        "datasets.irish_folk.music21_tunes": "datasets.irish_folk.build",
        "datasets.jsb_chorales.counts": "datasets.jsb_chorales.build",
        "datasets.jsb_chorales.windows": "datasets.tunes",
        "datasets.leakage": "datasets.irish_folk.leakage",
        "datasets.windows": "datasets.tunes",
    },
)
