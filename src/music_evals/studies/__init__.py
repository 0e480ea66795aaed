"""Studies with people: what they hear, in one form for every task."""
