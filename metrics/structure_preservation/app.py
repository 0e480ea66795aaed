"""The page of `structure_preservation`; a Space runs this file."""

from music_evals.ui.metric_page.page import build_metric_page, launch

demo = build_metric_page("structure_preservation", __file__)
if __name__ == "__main__":
    launch(demo)
