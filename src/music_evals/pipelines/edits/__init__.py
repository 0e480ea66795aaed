"""Edits that were asked for in words."""
