"""The page that judges an edit of music by its original; a Space runs this file."""

from music_evals.ui.frame import serve
from music_evals.ui.spaces.preservation import build_demo

if __name__ == "__main__":
    serve(build_demo, __file__)
