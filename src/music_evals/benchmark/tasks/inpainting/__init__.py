"""Score inpainting: items, systems, tables against the best baseline, pictures."""

TASKS = {"inpainting": "results:INPAINTING"}
RUNS = {"inpainting": "task:run_inpainting"}
