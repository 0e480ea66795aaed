"""Edits that systems make of sources: what is edited, the records, and the manifest that preservation reads."""

TASKS = {"edits": "task:EDITS"}
