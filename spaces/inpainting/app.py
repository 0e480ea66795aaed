"""Fill the gap in a melody: the page is built in `music_evals.ui.spaces.inpainting`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from music_evals.ui.frame import serve
from music_evals.ui.spaces.inpainting import build_page

if TYPE_CHECKING:
    import gradio as gr


def build_demo() -> gr.Blocks:
    """Build the page; model and data are those of the repository where this file lies in one."""
    return build_page(Path(__file__).resolve().parent.parent.parent)


if __name__ == "__main__":
    serve(build_demo, __file__)
