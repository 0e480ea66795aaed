"""Builders of the data sets."""
