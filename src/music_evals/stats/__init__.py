"""What a score is worth: intervals, paired tests, multiplicity."""
