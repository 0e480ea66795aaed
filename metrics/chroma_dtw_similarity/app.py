"""The page of `chroma_dtw_similarity`; a Space runs this file."""

from music_evals.ui.metric_page.page import build_metric_page, launch

demo = build_metric_page("chroma_dtw_similarity", __file__)
if __name__ == "__main__":
    launch(demo)
