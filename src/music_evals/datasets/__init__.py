"""Builders of the data sets."""

from music_evals.deprecation import moved_modules

moved_modules("music_evals", {"datasets.leakage": "datasets.irish_folk.leakage"})
