"""The leaderboard: the page is built in `music_evals.ui.spaces.leaderboard`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from music_evals.ui.frame import serve
from music_evals.ui.spaces.leaderboard import build_page

if TYPE_CHECKING:
    import gradio as gr


def build_demo() -> gr.Blocks:
    """Build the page over the board that MUSIC_EVALS_BOARD names, or the one that lies beside this file."""
    return build_page(Path(__file__).resolve().parent / "board")


if __name__ == "__main__":
    serve(build_demo, __file__)
