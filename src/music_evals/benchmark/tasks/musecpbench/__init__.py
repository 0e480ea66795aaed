"""MuseCPBench whole: systems edit the same sources, preservation is scored, and the tables of the study."""

TASKS = {"musecpbench": "task:MUSECPBENCH"}
