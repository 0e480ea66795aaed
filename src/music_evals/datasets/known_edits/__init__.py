"""Builder of the data set known_edits, and its renderer."""
