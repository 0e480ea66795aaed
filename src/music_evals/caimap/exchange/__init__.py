"""What comes into a study and what leaves it."""
