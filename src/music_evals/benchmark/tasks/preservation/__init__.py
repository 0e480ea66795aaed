"""What an edit preserved: pairs, controls, extractors, pictures."""

TASKS = {"preservation": "task:PRESERVATION"}
