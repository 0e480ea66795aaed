"""Notes as single networks take them: tokens, ids and grids."""
