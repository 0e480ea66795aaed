"""Recordings: decoding, the feature store, and one feature a file."""
