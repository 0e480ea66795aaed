"""Style transfer of scores: predicted cells of piano rolls, rearrangement, likeness to a corpus."""
