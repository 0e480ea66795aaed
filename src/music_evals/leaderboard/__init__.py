"""The leaderboard: an append-only board, its records, ranks and tables."""
