"""Songs: structured lyrics, descriptions, their discrepancy study, and lyric writing."""

TASKS = {"lyrics": "lyrics:LYRICS", "descriptions": "descriptions:DESCRIPTIONS"}
