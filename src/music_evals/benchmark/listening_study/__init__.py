"""Listening tests as studies: their report from tidy tables, and how large one must be."""
