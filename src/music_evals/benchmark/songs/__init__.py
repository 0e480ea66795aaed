"""Songs: structured lyrics, descriptions, their discrepancy study, and lyric writing."""
