"""Backends that need a package of their own: run by name only, never chosen because they happen to be installed."""
