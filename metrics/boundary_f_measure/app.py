"""The page of `boundary_f_measure`; a Space runs this file."""

from music_evals.ui.metric_page.page import build_metric_page, launch

demo = build_metric_page("boundary_f_measure", __file__)
if __name__ == "__main__":
    launch(demo)
