"""What a score is worth: intervals, paired tests, multiplicity."""

from music_evals.stats.multiplicity import holm
from music_evals.stats.paired import PairedTest, paired_mean_test, paired_mean_tests, swap_test_divergence
from music_evals.stats.resampling import (
    Interval,
    bootstrap_divergence,
    bootstrap_mean,
    bootstrap_means,
    null_divergence,
)

__all__ = [
    "Interval",
    "PairedTest",
    "bootstrap_divergence",
    "bootstrap_mean",
    "bootstrap_means",
    "holm",
    "null_divergence",
    "paired_mean_test",
    "paired_mean_tests",
    "swap_test_divergence",
]
