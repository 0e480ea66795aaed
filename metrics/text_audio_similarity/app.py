"""The page of `text_audio_similarity`; a Space runs this file."""

from music_evals.ui.frame import serve
from music_evals.ui.metric_page.page import build_metric_page


def build_demo():
    """Build the page with the card and the script that lie beside this file."""
    return build_metric_page("text_audio_similarity", __file__)


if __name__ == "__main__":
    serve(build_demo, __file__)
