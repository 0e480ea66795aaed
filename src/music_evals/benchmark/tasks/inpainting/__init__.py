"""Score inpainting: items, systems, tables against the best baseline, pictures."""

TASKS = {"inpainting": "task:INPAINTING"}
