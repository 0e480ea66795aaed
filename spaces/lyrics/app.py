"""The page that scores the structure of lyrics; a Space runs this file."""

from pathlib import Path
from typing import Any

from music_evals.ui.frame import serve
from music_evals.ui.spaces import lyrics


def build_demo() -> Any:
    """Build the page with the examples that lie beside this file."""
    return lyrics.build_demo(Path(__file__).with_name("examples.jsonl"))


if __name__ == "__main__":
    serve(build_demo, __file__)
