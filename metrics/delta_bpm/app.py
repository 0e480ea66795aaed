"""The page of `delta_bpm`; a Space runs this file."""

from music_evals.ui.metric_page.page import build_metric_page, launch

demo = build_metric_page("delta_bpm", __file__)
if __name__ == "__main__":
    launch(demo)
