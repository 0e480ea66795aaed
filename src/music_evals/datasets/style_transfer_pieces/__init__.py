"""Six pieces with a melody to keep, for transfers that people edit and rate."""
