"""What a score is worth: intervals, paired tests, correlations, multiplicity."""

from music_evals.stats.correlations import Correlation, correlation
from music_evals.stats.intervals import Interval, mean_interval, mean_intervals
from music_evals.stats.multiplicity import benjamini_hochberg, holm
from music_evals.stats.paired import PairedTest, paired_mean_test, paired_mean_tests, swap_test_divergence
from music_evals.stats.resampling import bootstrap_divergence, null_divergence, null_divergences

__all__ = [
    "Correlation", "Interval", "PairedTest", "benjamini_hochberg", "bootstrap_divergence", "correlation", "holm",
    "mean_interval", "mean_intervals", "null_divergence", "null_divergences", "paired_mean_test", "paired_mean_tests",
    "swap_test_divergence",
]  # fmt: skip
