"""The page on descriptions of music; a Space runs this file."""

from pathlib import Path
from typing import Any

from music_evals.ui import description_space
from music_evals.ui.frame import serve


def build_demo() -> Any:
    """Build the page with the songs that lie beside this file."""
    return description_space.build_demo(Path(__file__).with_name("songs.jsonl"))


if __name__ == "__main__":
    serve(build_demo, __file__)
