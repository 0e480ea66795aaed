"""The leaderboard: an append-only board, its records, ranks and tables.

`add_to_board` appends what a run found to a board; `build_leaderboard` makes its tables. A board is a folder of Parquet
files that are never changed, so that it can be a dataset repository on the Hub.
"""

from music_evals.leaderboard.board import Added, add_to_board, read_board
from music_evals.leaderboard.export import keep_tables, load_leaderboard, write_leaderboard
from music_evals.leaderboard.records import ResultRecord
from music_evals.leaderboard.tables import build_leaderboard

__all__ = [
    "Added", "ResultRecord", "add_to_board", "build_leaderboard", "keep_tables", "load_leaderboard", "read_board",
    "write_leaderboard",
]  # fmt: skip
