"""Networks, baselines and their training."""
