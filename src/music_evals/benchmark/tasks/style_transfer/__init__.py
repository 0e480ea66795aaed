"""Style transfer: cells that models predict of a corpus, and pieces that they carry over to its style."""

TASKS = {"style-transfer": "task:STYLE_TRANSFER"}
