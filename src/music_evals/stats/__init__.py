"""What a score is worth: intervals, paired tests, multiplicity."""

from music_evals.stats.intervals import Interval, mean_interval, mean_intervals
from music_evals.stats.multiplicity import holm
from music_evals.stats.paired import PairedTest, paired_mean_test, paired_mean_tests, swap_test_divergence
from music_evals.stats.resampling import bootstrap_divergence, null_divergence, null_divergences

__all__ = [
    "Interval",
    "PairedTest",
    "bootstrap_divergence",
    "holm",
    "mean_interval",
    "mean_intervals",
    "null_divergence",
    "null_divergences",
    "paired_mean_test",
    "paired_mean_tests",
    "swap_test_divergence",
]
