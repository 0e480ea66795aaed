"""MuseCPBench whole: systems edit the same sources, what they preserved is judged, and the tables of the study."""
