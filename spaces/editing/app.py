"""The page that edits music and shows what stayed; a Space runs this file."""

from music_evals.ui.frame import serve
from music_evals.ui.spaces.editing import build_demo

if __name__ == "__main__":
    serve(build_demo, __file__)
