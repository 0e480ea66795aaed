"""Songs: structured lyrics, descriptions, their discrepancy study, and lyric writing."""

TASKS = {"lyrics": "lyrics:LYRICS", "descriptions": "descriptions:DESCRIPTIONS"}
RUNS = {
    "lyrics": "lyrics:run_lyrics",
    "descriptions": "descriptions:run_descriptions",
    "discrepancy": "discrepancy:run_discrepancy",
    "lyric_writing": "lyric_writing:run_writing",
}
