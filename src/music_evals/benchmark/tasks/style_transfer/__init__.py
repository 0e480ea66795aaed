"""Style transfer: cells that models predict of a corpus, and pieces that they carry over to its style."""

TASKS = {"style-transfer": "results:STYLE_TRANSFER"}
RUNS = {"style-transfer": "task:run_style_transfer"}
