"""Another accompaniment in a style: the page is built in `music_evals.ui.spaces.style_transfer`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from music_evals.ui.frame import serve
from music_evals.ui.spaces.style_transfer import build_page

if TYPE_CHECKING:
    import gradio as gr


def build_demo() -> gr.Blocks:
    """Build the page; models and pieces are those of the repository where this file lies in one."""
    return build_page(Path(__file__).resolve().parent.parent.parent)


if __name__ == "__main__":
    serve(build_demo, __file__)
