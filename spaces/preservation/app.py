"""The page that judges an edit of music by its original; a Space runs this file."""

from music_evals.ui.frame import launch
from music_evals.ui.spaces.preservation import build_demo

if __name__ == "__main__":
    launch(build_demo())
