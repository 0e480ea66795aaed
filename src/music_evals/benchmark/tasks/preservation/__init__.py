"""What an edit preserved: pairs, controls, extractors, pictures."""

TASKS = {"preservation": "results:PRESERVATION"}
RUNS = {"preservation": "task:run_preservation"}
