"""The discrepancy study for readers: tables for a terminal and in Markdown, a page, and a picture that stands alone.

The picture is in the style of figure 3 of MuChin.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from music_evals.annotations import AUDIO_EFFECTS
from music_evals.benchmark.formats import (
    SIGNIFICANCE,
    align,
    check_backend,
    coverage_note,
    format_value,
    literal,
    markdown_rows,
    render,
    static,
)
from music_evals.lyrics.tag_groups import GROUPINGS
from music_evals.pipelines.discrepancy import ALL, FACING, Cell, DiscrepancyStudy


def text_study(study: DiscrepancyStudy) -> str:
    """Return the similarities as columns of plain text, a table for each grouping, and what differs."""
    head = ["group", "songs", *(FACING[name].english.split()[0] for name in study.dimensions)]
    parts = [f"similarity of professionals and amateurs, {_how(study)}; lower is a larger discrepancy"]
    for grouping in study.groups:
        lines = []
        for name, cells in _rows(study, grouping):
            values = [format_value(cell.similarity) + ("*" if _is_marked(cell) else " ") for cell in cells]
            lines.append([name, str(cells[0].n), *values])
        parts += ["", f"by {GROUPINGS[grouping].english.lower()}", align([head, *lines])]
    parts += ["", f"* differs from the other songs, p < {SIGNIFICANCE} after Holm's correction"]
    return "\n".join(parts)


def markdown_study(study: DiscrepancyStudy, notes: Sequence[str]) -> str:
    """Return the similarities with their intervals as Markdown, a table for each grouping, and what differs."""
    parts = ["# Professionals against amateurs", "", f"{_how(study)}. {study.n_songs} songs. {_legend(study)}"]
    head = ["group", "songs", *(FACING[name].english for name in study.dimensions)]
    for grouping in study.groups:
        lines = [[name, str(cells[0].n), *map(_with_interval, cells)] for name, cells in _rows(study, grouping)]
        rule = ["---", *["---:"] * (len(head) - 1)]
        parts += ["", f"## By {GROUPINGS[grouping].english.lower()}", "", markdown_rows([head, rule, *lines])]
    columns, differences = _differing_groups(study)
    differing = markdown_rows([columns, ["---"] * 3 + ["---:"] * 5, *differences]) if differences else "None."
    parts += ["", "## Groups that differ from the other songs", "", differing]
    return "\n".join([*parts, "", *(f"- {note}" for note in notes)])


def render_study(study: DiscrepancyStudy, results: Mapping[str, Any], picture: str) -> str:
    """Return the study as one HTML page that needs nothing but a browser."""
    head, rows = _differing_groups(study)
    tables = [{"title": GROUPINGS[name].english.lower(), "rows": _rows(study, name)} for name in study.groups]
    if picture:  # which stands alone, as an element of a page: the page knows the names of the namespaces
        picture = re.sub(r"<metadata>.*?</metadata>", "", picture[picture.index("<svg") :], flags=re.DOTALL)
        picture = re.sub(r' xmlns(:xlink)?="[^"]*"', "", picture)
        label = "Similarity of professionals and amateurs by group of songs; the tables hold the same numbers"
        picture = picture.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
    dataset, settings = results["dataset"], results["settings"]
    encoder = settings["encoder"]
    facts = {
        "dataset": " / ".join(str(dataset[key]) for key in ("id", "config", "split") if dataset[key]),
        **{name: value for name, value in dataset.items() if name not in {"id", "config", "split"} and value},
        **settings,
        "encoder": encoder["name"],
        "revision of the encoder": encoder["revision"] or "none",
        "clusters of songs": results["n_clusters"],
        **{f"version of {name}": version for name, version in results["versions"].items()},
    }
    return render(
        "music_evals.benchmark.tasks.songs",
        "study.html",
        title=f"Professionals against amateurs: {results['dataset']['id']}",
        style=static("report.css"),
        script="",
        how=_how(study),
        n_songs=study.n_songs,
        legend=_legend(study),
        picture=picture,
        head=["group", "songs", *(FACING[name].english for name in study.dimensions)],
        tables=tables,
        is_marked=_is_marked,
        value=format_value,
        differences_head=head,
        differences=rows,
        notes=results["notes"],
        facts=facts,
    )


def _how(study: DiscrepancyStudy) -> str:
    settings = study.settings
    compared = "tags" if settings["level"] == "tags" else "all tags of a dimension as one text"
    how = "" if settings["level"] == "joined" else f", {settings['aggregation']}"
    normalized = ", divided by self-similarity" if settings["normalize_by_self"] else ""
    encoder = settings["encoder"]
    revision = f" at {encoder['revision']}" if encoder["revision"] else ""
    return f"{compared}{how}{normalized}, encoder {encoder['name']}{revision}"


def _legend(study: DiscrepancyStudy) -> str:
    held = ((cell.n_clusters, cell.n_defined) for cell in study.cells if not math.isnan(cell.low))
    few = coverage_note(held, "songs", divergences=False)
    return (
        f"Each cell: mean similarity and {study.settings['confidence']:.0%} interval, clustered by song; lower is a "
        "larger discrepancy. In bold: differs from the other songs after Holm's correction."
        + (f" {few[0].upper()}{few[1:]}." if few else "")
    )


def _rows(study: DiscrepancyStudy, grouping: str) -> list[tuple[str, list[Cell]]]:
    """Return title and cells of all songs, and of each group."""
    keys = [(ALL, ALL), *((grouping, group) for group in study.groups[grouping])]
    return [(_title(*key), [study.cell(*key, name) for name in study.dimensions]) for key in keys]


def _title(grouping: str, group: str) -> str:
    groups = () if group == ALL else GROUPINGS[grouping].groups
    return next((member.english for member in groups if member.name == group), "All songs")


def _is_marked(cell: Cell) -> bool:
    """Tell whether a group differs from the other songs."""
    return cell.p_adjusted < SIGNIFICANCE


def _with_interval(cell: Cell) -> str:
    value = format_value(cell.similarity)
    marked = f"**{value}**" if _is_marked(cell) else value
    return f"{marked} ({format_value(cell.low)}..{format_value(cell.high)})"


def _differing_groups(study: DiscrepancyStudy) -> tuple[list[str], list[list[str]]]:
    """Return names of columns, and a row for each group that differs from the other songs."""
    marked = sorted(filter(_is_marked, study.cells), key=lambda cell: cell.p_adjusted)
    head = ["grouping", "group", "dimension", "songs", "similarity", "difference", "p", "p, Holm"]
    lines = [
        [
            cell.grouping,
            _title(cell.grouping, cell.group),
            FACING[cell.dimension].english,
            str(cell.n_defined),
            format_value(cell.similarity),
            f"{cell.difference:+.3f}",
            f"{cell.p_value:.2g}",
            f"{cell.p_adjusted:.2g}",
        ]
        for cell in marked
    ]
    return head, lines


PANEL_INCHES: Final = (11.0, 3.6)

# ten colours that also differ in lightness, and ten marks: a line is identified by either
COLOURS: Final = (
    "#332288", "#88ccee", "#44aa99", "#117733", "#999933", "#ddaa33", "#cc6677", "#882255", "#aa4499", "#777777",
)  # fmt: skip
MARKS: Final = "os^vD<>pPX"

STYLE: Final = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "discrepancy",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
}

LEAST_SONGS: Final = 5
"""A mean of fewer songs has no dot: it is that of a few annotators."""

EFFECTS_SHARE: Final = 0.55  # height of the panel of audio effects, of that of the others
LABEL_WIDTH = 11  # letters that fit below a group
SPREAD = 0.7  # of the room of a group, for the points of its dimensions


def plot_study(study: DiscrepancyStudy) -> str:
    """Draw panels for each grouping: groups of songs along x, a dot with its interval for each dimension."""
    # The first place of each panel is that of all songs. A filled dot differs from the songs outside its group after
    # Holm's correction; the others are hollow. Below each group stands its number of songs; where there are fewer than
    # `LEAST_SONGS`, no dot is drawn. Audio effects have a panel of their own below the other dimensions: to a closed
    # question nearly all songs have one answer, and on one scale the rest would be pressed flat.
    check_backend()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        width, height = PANEL_INCHES
        # the dimensions of each panel: all but the audio effects, and these
        effects = [name for name in study.dimensions if name == AUDIO_EFFECTS]
        others = [name for name in study.dimensions if name != AUDIO_EFFECTS]
        panels = [(grouping, names) for grouping in study.groups for names in (others, effects) if names]
        shares = [
            EFFECTS_SHARE if names == [AUDIO_EFFECTS] and len(study.dimensions) > 1 else 1.0 for _, names in panels
        ]
        figure = Figure(figsize=(width, height * sum(shares)), layout="constrained")
        rows = figure.subplots(len(panels), 1, squeeze=False, height_ratios=shares)[:, 0]
        for axes, (grouping, names) in zip(rows, panels, strict=True):
            _draw_panel(axes, study, grouping, names)
        known: dict[str, Any] = {}
        for axes in rows:
            known |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
        labels, handles = list(known), list(known.values())
        figure.legend(handles, labels, loc="outside right upper", frameon=False)
        settings = study.settings
        how = f"Professionals against amateurs: {settings['level']}, encoder {literal(settings['encoder']['name'])}"
        figure.suptitle(how, x=0.01, ha="left", fontsize=11)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", facecolor="white", metadata={"Date": None, "Creator": None})
    # the date is left out and the names are salted, so that nothing but the numbers decides the text
    return re.sub(r"(?<![ \t])[ \t]+\n", "\n", buffer.getvalue())


def _draw_panel(axes: Any, study: DiscrepancyStudy, grouping: str, names: Sequence[str]) -> None:
    chosen = GROUPINGS[grouping]
    keys = [(ALL, ALL, "All songs"), *((grouping, group.name, group.english) for group in chosen.groups)]
    cells = {name: [study.cell(by, group, name) for by, group, _ in keys] for name in names}
    shifts = np.linspace(-SPREAD / 2, SPREAD / 2, len(cells)) if len(cells) > 1 else np.zeros(1)
    for (name, row), shift in zip(cells.items(), shifts.tolist(), strict=True):
        place = list(study.dimensions).index(name)
        style = {"color": COLOURS[place % len(COLOURS)], "marker": MARKS[place % len(MARKS)]}
        _draw_dimension(axes, row, shift, FACING[name].english, style)
    songs = [row.n for row in next(iter(cells.values()))]
    titles = [textwrap.fill(title, LABEL_WIDTH) for *_, title in keys]
    labels = [
        f"{literal(title)}\nn = {n}{'' if n >= LEAST_SONGS else ', hidden'}"
        for title, n in zip(titles, songs, strict=True)
    ]
    axes.set_xticks(range(len(keys)), labels)
    axes.axvline(0.5, color="#999999", linewidth=0.8, linestyle=":")
    axes.set_xlim(-0.5, len(keys) - 0.5)
    axes.grid(axis="y", linewidth=0.4)
    axes.set_axisbelow(True)
    axes.set_ylabel("similarity (low: they differ)")
    effects = ", audio effects" if list(names) == [AUDIO_EFFECTS] and len(study.dimensions) > 1 else ""
    axes.set_title(f"By {chosen.english.lower()}{effects}", loc="left")


def _draw_dimension(axes: Any, row: Sequence[Cell], shift: float, label: str, style: dict[str, Any]) -> None:
    shown = [place for place, cell in enumerate(row) if cell.n_defined >= LEAST_SONGS]
    row = [row[place] for place in shown]
    x = np.array(shown, dtype=np.float64) + shift
    values = np.array([cell.similarity for cell in row])
    ends = np.array([(cell.low, cell.high) for cell in row]).reshape(-1, 2)
    reach = np.abs(ends - values[:, None]).T  # a bootstrap interval need not hold its estimate to the last bit
    axes.errorbar(
        x, values, yerr=reach, **style, linestyle="none", markersize=4, markerfacecolor="white", elinewidth=0.9,
        markeredgewidth=0.9, label=label,
    )  # fmt: skip
    differs = np.array([cell.p_adjusted < 0.05 for cell in row], dtype=bool)
    axes.plot(x[differs], values[differs], **style, linestyle="none", markersize=7)
