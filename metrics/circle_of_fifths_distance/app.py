"""The page of `circle_of_fifths_distance`; a Space runs this file."""

from music_evals.ui.metric_page.page import build_metric_page, launch

demo = build_metric_page("circle_of_fifths_distance", __file__)
if __name__ == "__main__":
    launch(demo)
