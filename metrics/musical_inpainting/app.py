"""The page of `musical_inpainting`; a Space runs this file."""

from music_evals.ui.metric_page.page import build_metric_page, launch

demo = build_metric_page("musical_inpainting", __file__)
if __name__ == "__main__":
    launch(demo)
