"""Music on the page: notes, grids, measures, encodings and files."""
