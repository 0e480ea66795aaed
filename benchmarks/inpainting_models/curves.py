"""Draw the training curves of the inpainting networks, from the logs that lie beside this script.

Usage: python -m benchmarks.inpainting_models.curves

Draws each `<model>_log.csv` as `<model>_curves.svg`, such as that of `vli` and, where they are there, of the folk
weights as `vli_folk`, and writes the links between the markers of README.md. A log is what training leaves behind: one
row an epoch, with its losses, of one stage after the other. Epoch 0, where there is one, is what a stage started from.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from benchmarks.drawing import INK, ORANGE, plt, save

from music_evals.files import write_atomically

HERE = Path(__file__).parent
LOG, PICTURE = "_log.csv", "_curves.svg"
START, END = "<!-- curves:start -->", "<!-- curves:end -->"

Row = Mapping[str, str]


def read_stages(log: Path) -> dict[str, list[Row]]:
    """Return the epochs of each stage of a log, in their order; a training without stages is one without a name."""
    stages: dict[str, list[Row]] = {}
    with log.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            stages.setdefault(row.get("stage", ""), []).append(row)
    if not stages:
        message = f"{log} has no epochs; nothing can be drawn"
        raise ValueError(message)
    return stages


def draw(stages: Mapping[str, Sequence[Row]], path: Path) -> None:
    """Draw losses against epochs, one panel a stage; a dot marks the epoch whose weights were kept."""
    figure, grid = plt.subplots(
        1, len(stages), figsize=(2.6 * len(stages) + 0.6, 2.2), squeeze=False, layout="constrained"
    )
    for axes, (stage, rows) in zip(grid[0], stages.items(), strict=True):
        epochs = [int(row["epoch"]) for row in rows]
        for name, colour in (("train", ORANGE), ("validation", INK)):
            losses = [float(row[f"{name}_loss"] or "nan") for row in rows]
            axes.plot(epochs, losses, color=colour, linewidth=1.2, label=name)
        validation = [float(row["validation_loss"]) for row in rows]
        best = int(np.argmin(validation))
        axes.plot(epochs[best], validation[best], "o", color=INK, markersize=4, label="kept")
        axes.set_title(stage, loc="left", fontsize=8)
        axes.set_xlabel("epoch")
        axes.set_ylim(bottom=0)
    grid[0, 0].set_ylabel("loss")
    grid[0, -1].legend(frameon=False)
    save(figure, path)


def draw_all(folder: Path) -> list[Path]:
    """Draw every log of a folder, and return the pictures."""
    drawn = []
    for log in sorted(folder.glob(f"*{LOG}")):
        drawn.append(log.with_name(log.name.removesuffix(LOG) + PICTURE))
        draw(read_stages(log), drawn[-1])
    return drawn


def links(pictures: Sequence[Path]) -> str:
    """Return the pictures as they stand on the page."""
    names = [path.name.removesuffix(PICTURE) for path in pictures]
    shown = (f"![Losses of {name}]({path.name})" for name, path in zip(names, pictures, strict=True))
    return "\n\n".join(f"`{name}`\n\n{picture}" for name, picture in zip(names, shown, strict=True))


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw all logs and write the links."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--folder", type=Path, default=HERE, help="with logs and README.md (default: beside this script)"
    )
    folder = parser.parse_args(arguments).folder
    page = folder / "README.md"
    before, start, rest = page.read_text(encoding="utf-8").partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise SystemExit(f"{page}: expected the markers {START} and {END}")
    pictures = draw_all(folder)
    write_atomically(page, f"{before}{START}\n{links(pictures)}\n{END}{after}".encode())
    print("\n".join(map(str, pictures)))


if __name__ == "__main__":
    main()
