"""The pictures of the tables: pitch histograms, models side by side, correlations, and what data set size does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from benchmarks.drawing import GREY, INK, ORANGE, plt, save
from benchmarks.musib.judging import Judged, design_of
from benchmarks.musib.systems import DESIGNS

from music_evals.annotations import HOLD, MUSIB_LAYOUT
from music_evals.benchmark.contents import table_of
from music_evals.benchmark.tasks.inpainting.task import HEADINGS
from music_evals.protocols import CONTROLS

COLOURS = dict(zip((design.name for design in DESIGNS), (INK, ORANGE, "#3d8b4f", "#7a4fa3"), strict=True))
Floats = npt.NDArray[np.float64]


def models_of(run: Judged) -> list[str]:
    """Return the systems of a run that are models, in the order of the paper."""
    found = [(design_of(run.results, system), system) for system in run.results["systems"]]
    return [system for design in DESIGNS for one, system in found if one == design]


def pitch_shares(middles: Sequence[Sequence[int]]) -> Floats:
    """Return which share of all onsets has each pitch, shape (128,)."""
    tokens = np.array(middles, dtype=np.int64).ravel()
    counts = np.bincount(tokens[tokens < HOLD], minlength=HOLD)
    shares: Floats = counts / max(counts.sum(), 1)
    return shares


def draw_pitches(run: Judged, path: Path) -> None:
    """Draw the pitches of the true middles (grey) and of each system's (line): the models and copying."""
    systems = [*models_of(run), *(name for name in ("copy_past",) if name in run.results["systems"])]
    items = list(run.found.item_rows)
    truth = pitch_shares([run.found.item_rows[item]["tokens"][MUSIB_LAYOUT.middle] for item in items])
    shares = {
        name: pitch_shares([
            middle for item in items for middle in run.found.prediction(item, name) if middle is not None
        ])
        for name in systems
    }  # fmt: skip
    used = np.flatnonzero(truth + sum(shares.values()))
    low, high = (max(int(used[0]) - 1, 0), min(int(used[-1]) + 2, HOLD)) if len(used) else (59, 62)
    figure, grid = plt.subplots(
        len(systems), 1, figsize=(6, 1.25 * len(systems) + 0.4), sharex=True, sharey=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for axes, name in zip(grid[:, 0], systems, strict=True):
        axes.bar(range(low, high), truth[low:high], width=1, color=GREY, alpha=0.5, label="true middles")
        axes.step(range(low, high), shares[name][low:high], where="mid", color=INK, label="filled")
        axes.set_title(name, loc="left", fontsize=8)
    grid[0, 0].legend(frameon=False, fontsize=7)
    grid[-1, 0].set_xlabel("MIDI pitch")
    figure.supylabel("share of onsets", fontsize=8)
    save(figure, path)


COMPARED = ("note_f1", "position_score", "pitch_accuracy", "rhythm_accuracy")
DIVERGENCES = ("silence_divergence", "pitch_class_divergence", "groove_divergence")


def draw_comparison(run: Judged, path: Path) -> None:
    """Draw every score of every system with its interval; models in colour, rules in grey, a tick for a noise floor."""
    table = table_of(run.results)
    systems = [name for name in reversed(table["ranking"]) if name not in CONTROLS]
    metrics = [name for name in (*COMPARED, *DIVERGENCES) if any(name in table["scores"][one] for one in systems)]
    figure, grid = plt.subplots(
        1, len(metrics), figsize=(1.5 * len(metrics) + 1.4, 0.2 * len(systems) + 0.8), sharey=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for axes, metric in zip(grid[0], metrics, strict=True):
        for y, system in enumerate(systems):
            design = design_of(run.results, system)
            _dot(axes, y, table["scores"][system].get(metric, {}), COLOURS[design.name] if design else GREY)
        axes.set_title(HEADINGS[metric], fontsize=8)
        axes.grid(axis="x", linewidth=0.4)
    grid[0, 0].set_yticks(range(len(systems)), systems)
    save(figure, path)


def _dot(axes: Any, y: int, cell: Mapping[str, Any], colour: str) -> None:
    if cell.get("value") is None:
        return
    if cell["low"] is not None and cell["high"] is not None:
        axes.hlines(y, cell["low"], cell["high"], color=colour, linewidth=1.5)
    axes.plot(cell["value"], y, "o", markersize=3.5, color=colour)
    if cell.get("null") is not None:
        axes.vlines(cell["null"], y - 0.35, y + 0.35, color="black", linewidth=0.8)


def draw_correlations(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw the correlations by item and by system, one square a pair of scores."""
    levels = [level for level in ("item", "system") if any(row["level"] == level for row in rows)]
    figure, grid = plt.subplots(1, len(levels), figsize=(4.2 * len(levels), 3.6), squeeze=False, layout="constrained")
    for axes, level in zip(grid[0], levels, strict=True):
        own = [row for row in rows if row["level"] == level]
        names = list(dict.fromkeys(name for row in own for name in (row["a"], row["b"])))
        matrix = np.full((len(names) - 1, len(names) - 1), np.nan)  # below the diagonal
        for row in own:
            x, y = sorted((names.index(row["a"]), names.index(row["b"])))
            matrix[y - 1, x] = row["rho"]
        axes.imshow(matrix, cmap="RdBu", vmin=-1, vmax=1)
        for (y, x), value in np.ndenumerate(matrix):
            if not np.isnan(value):
                ink = "white" if abs(value) > 0.6 else "black"
                axes.text(x, y, f"{value:.2f}", ha="center", va="center", fontsize=6, color=ink)
        labels = [HEADINGS.get(name, name) for name in names]
        axes.set_xticks(range(len(names) - 1), labels[:-1], rotation=40, ha="right", fontsize=7)
        axes.set_yticks(range(len(names) - 1), labels[1:], fontsize=7)
        axes.set_title(f"by {level}", fontsize=8)
        axes.spines[:].set_visible(False)
    save(figure, path)


def draw_sizes(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw the note F1 of each design against the number of tunes that it was trained on, with intervals."""
    figure, axes = plt.subplots(figsize=(4.5, 2.8), layout="constrained")
    for name, colour in COLOURS.items():
        own = sorted((row for row in rows if row["design"] == name), key=lambda row: int(row["songs"]))
        if own:
            x, y, low, high = (np.array([float(row[key]) for row in own]) for key in ("songs", "value", "low", "high"))
            axes.plot(x, y, "o-", color=colour, markersize=3.5, label=name)
            axes.vlines(x, low, high, color=colour, linewidth=1)
    axes.set_xscale("log")
    sizes = sorted({int(row["songs"]) for row in rows})
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("tunes in training")
    axes.set_ylim(bottom=0)
    axes.set_ylabel("note F1")
    figure.legend(loc="outside upper center", ncols=len(COLOURS), frameon=False, fontsize=7)
    save(figure, path)
