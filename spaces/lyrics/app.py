"""The page that scores the structure of lyrics; a Space runs this file."""

from pathlib import Path
from typing import Any

from music_evals.ui.frame import launch
from music_evals.ui.spaces import lyrics as lyrics_space


def build_demo() -> Any:
    """Build the page with the examples that lie beside this file."""
    return lyrics_space.build_demo(Path(__file__).with_name("examples.jsonl"))


if __name__ == "__main__":
    launch(build_demo())
