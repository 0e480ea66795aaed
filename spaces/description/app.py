"""The page on descriptions of music; a Space runs this file."""

from pathlib import Path
from typing import Any

from music_evals.ui.frame import serve
from music_evals.ui.spaces import description


def build_demo() -> Any:
    """Build the page with the songs that lie beside this file."""
    return description.build_demo(Path(__file__).with_name("songs.jsonl"))


if __name__ == "__main__":
    serve(build_demo, __file__)
