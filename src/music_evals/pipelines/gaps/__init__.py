"""Gaps in melodies: filled by a model that is handed in, and compared with the truth."""
