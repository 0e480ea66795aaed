"""The page of `note_f1`; a Space runs this file."""

from music_evals.ui.metric_page.page import build_metric_page, launch

demo = build_metric_page("note_f1", __file__)
if __name__ == "__main__":
    launch(demo)
