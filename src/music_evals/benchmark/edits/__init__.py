"""Edits that systems make of sources: what is edited, the records, and the manifest that preservation reads."""

MAKERS = {"edits": "task:run_edits", "edit_settings": "task:Settings", "editor": "work:make_editor"}
