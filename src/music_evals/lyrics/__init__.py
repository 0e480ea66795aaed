"""Song texts: sections and lines, rhyme classes, text embeddings."""
