"""The editing test as a study: its report from tables, and how large one must be."""
