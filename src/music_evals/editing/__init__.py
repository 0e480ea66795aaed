"""Editing systems: one file a system, behind `protocols.EditingSystem`.

None of them reads a file or falls back to another model. What all share stands once: checks and the way from a request
to a result in `system`, keys and seeds in `seeds`, length, rate and loudness in `alignment`, and the writing of
instructions by templates in `instructions`. Systems are found by name in `protocols.EDITORS`.
"""
