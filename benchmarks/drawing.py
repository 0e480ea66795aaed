"""What pictures of benchmarks share: how matplotlib is set, and files that come out the same again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

from music_evals.files import written_whole

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "music_evals"  # the same bytes again
mpl.rcParams["svg.fonttype"] = "none"  # text stays text
mpl.rcParams["font.size"] = 8
mpl.rcParams["axes.spines.top"] = mpl.rcParams["axes.spines.right"] = False
from matplotlib import pyplot as plt  # noqa: E402 - after the choice of the backend

__all__ = ["GREY", "INK", "ORANGE", "plt", "save"]

INK, ORANGE, GREY = "#1f5f8b", "#c4622d", "#9a9a9a"


def save(figure: Any, path: Path) -> None:
    """Write a figure as SVG, whole or not at all, and close it."""
    with written_whole(path) as part:
        figure.savefig(part, format="svg", metadata={"Date": None})
    plt.close(figure)
