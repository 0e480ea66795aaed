"""Songs: structured lyrics, descriptions, their discrepancy study, and lyric writing."""

TASKS = {
    "lyrics": "lyrics:LYRICS",
    "descriptions": "descriptions:DESCRIPTIONS",
    "discrepancy": "discrepancy:DISCREPANCY",
    "lyric_writing": "lyric_writing:LYRIC_WRITING",
}
