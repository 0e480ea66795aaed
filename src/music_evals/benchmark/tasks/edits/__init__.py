"""Edits that systems make of sources: what is edited, the records, and the manifest that preservation reads."""

MAKERS = {
    "edits": "task:run_edits",
    "edit_settings": "task:Settings",
    "edit_work": "work:EditWork",
    "check_editor": "work:check_editor",
}
