"""The discrepancy study as tables for a terminal, in Markdown, and as a page."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from music_evals.benchmark.formats import (
    SIGNIFICANCE,
    align,
    coverage_note,
    format_value,
    markdown_rows,
    render,
    static,
)
from music_evals.lyrics.tag_groups import GROUPINGS
from music_evals.pipelines.discrepancy import ALL, FACING, Cell, DiscrepancyStudy

__all__ = ["markdown_study", "render_study", "text_study"]


def text_study(study: DiscrepancyStudy) -> str:
    """Return the similarities as columns of plain text, a table for each grouping, and what differs."""
    head = ["group", "songs", *(FACING[name].english.split()[0] for name in study.dimensions)]
    parts = [f"similarity of professionals and amateurs, {_how(study)}; lower is a larger discrepancy"]
    for grouping in study.groups:
        lines = [[name, str(cells[0].n), *map(_value, cells)] for name, cells in _rows(study, grouping)]
        parts += ["", f"by {GROUPINGS[grouping].english.lower()}", align([head, *lines])]
    parts += ["", f"* differs from the other songs, p < {SIGNIFICANCE} after Holm's correction"]
    return "\n".join(parts)


def markdown_study(study: DiscrepancyStudy, notes: Sequence[str]) -> str:
    """Return the similarities with their intervals as Markdown, a table for each grouping, and what differs."""
    parts = ["# Professionals against amateurs", "", f"{_how(study)}. {study.n_songs} songs. {_legend(study)}"]
    head = _head(study)
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
    return render(
        "music_evals.benchmark.tasks.songs",
        "study.html",
        title=f"Professionals against amateurs: {results['dataset']['id']}",
        style=static("report.css"),
        script="",
        how=_how(study),
        n_songs=study.n_songs,
        legend=_legend(study),
        picture=_figure(picture),
        head=_head(study),
        tables=tables,
        is_marked=_is_marked,
        value=format_value,
        differences_head=head,
        differences=rows,
        notes=results["notes"],
        facts=_facts(results),
    )


def _figure(picture: str) -> str:
    """Return a picture that stands alone as an element of a page: the page knows the names of the namespaces."""
    if not picture:
        return ""
    element = re.sub(r"<metadata>.*?</metadata>", "", picture[picture.index("<svg") :], flags=re.DOTALL)
    element = re.sub(r' xmlns(:xlink)?="[^"]*"', "", element)
    label = "Similarity of professionals and amateurs by group of songs; the tables hold the same numbers"
    return element.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


def _facts(results: Mapping[str, Any]) -> dict[str, Any]:
    dataset, settings = results["dataset"], results["settings"]
    encoder = settings["encoder"]
    return {
        "dataset": " / ".join(str(dataset[key]) for key in ("id", "config", "split") if dataset[key]),
        **{name: value for name, value in dataset.items() if name not in {"id", "config", "split"} and value},
        **settings,
        "encoder": encoder["name"],
        "revision of the encoder": encoder["revision"] or "none",
        "clusters of songs": results["n_clusters"],
        **{f"version of {name}": version for name, version in results["versions"].items()},
    }


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


def _head(study: DiscrepancyStudy) -> list[str]:
    return ["group", "songs", *(FACING[name].english for name in study.dimensions)]


def _rows(study: DiscrepancyStudy, grouping: str) -> list[tuple[str, list[Cell]]]:
    """Return title and cells of all songs, and of each group."""
    keys = [(ALL, ALL), *((grouping, group) for group in study.groups[grouping])]
    return [(_title(*key), [study.cell(*key, name) for name in study.dimensions]) for key in keys]


def _title(grouping: str, group: str) -> str:
    if group == ALL:
        return "All songs"
    return next(member.english for member in GROUPINGS[grouping].groups if member.name == group)


def _is_marked(cell: Cell) -> bool:
    """Tell whether a group differs from the other songs."""
    return cell.p_adjusted < SIGNIFICANCE


def _value(cell: Cell) -> str:
    return format_value(cell.similarity) + ("*" if _is_marked(cell) else " ")


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
