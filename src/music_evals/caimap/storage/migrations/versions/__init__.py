"""Steps, in the order of their numbers."""
