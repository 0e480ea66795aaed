"""The page of `motif_jaccard`; a Space runs this file."""

from music_evals.ui.metric_page.page import build_metric_page, launch

demo = build_metric_page("motif_jaccard", __file__)
if __name__ == "__main__":
    launch(demo)
