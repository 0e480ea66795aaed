"""The discrepancy study as tables for a terminal, in Markdown, and as a page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from music_evals.benchmark.cells import SIGNIFICANCE, align, format_value, markdown_rows
from music_evals.benchmark.page import STYLE, facts_table, page, plain_table
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
    parts += ["", "## Groups that differ from the other songs", "", _differences(study)]
    return "\n".join([*parts, "", *(f"- {note}" for note in notes)])


def render_study(study: DiscrepancyStudy, results: Mapping[str, Any], picture: str) -> str:
    """Return the study as one HTML page that needs nothing but a browser.

    Parameters
    ----------
    study
        What was found.
    results
        The content of results.json.
    picture
        From `discrepancy_plots.plot_study`; empty for none.

    Returns
    -------
    str
        HTML without any outside reference.

    """
    title = f"Professionals against amateurs: {results['dataset']['id']}"
    notes = "".join(f"<li>{escape(note)}</li>" for note in results["notes"])
    head, rows = _found_differences(study)
    differences = plain_table(head, [list(map(escape, row)) for row in rows]) if rows else "<p>None.</p>"
    sections = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="muted">{escape(_how(study))}. {study.n_songs} songs. {escape(_legend(study))}</p>',
        _figure(picture),
        *(_html_table(study, grouping) for grouping in study.groups),
        f"<h2>Groups that differ from the other songs</h2>\n{differences}",
        f"<h2>Notes</h2>\n<ul>{notes}</ul>",
        _receipt(results),
    ]
    return page(title, sections, style=STYLE + "figure.paper { background: white; padding: .6rem; }")


def _figure(picture: str) -> str:
    """Return a picture that stands alone as an element of a page: the page knows the names of the namespaces."""
    if not picture:
        return ""
    element = re.sub(r"<metadata>.*?</metadata>", "", picture[picture.index("<svg") :], flags=re.DOTALL)
    element = re.sub(r' xmlns(:xlink)?="[^"]*"', "", element)
    label = "Similarity of professionals and amateurs by group of songs; the tables hold the same numbers"
    element = element.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
    return f'<figure class="paper">{element}</figure>'


def _html_table(study: DiscrepancyStudy, grouping: str) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in _head(study))
    rows = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{cells[0].n}</td>{"".join(map(_html_cell, cells))}</tr>'
        for name, cells in _rows(study, grouping)
    )
    return (
        f'<h2>By {escape(GROUPINGS[grouping].english.lower())}</h2>\n<div class="scroll"><table><thead><tr>{head}</tr>'
        f"</thead><tbody>\n{rows}\n</tbody></table></div>"
    )


def _html_cell(cell: Cell) -> str:
    value = format_value(cell.similarity)
    marked = f"<b>{value}</b>" if cell.p_adjusted < SIGNIFICANCE else value
    return f"<td>{marked}<small>{format_value(cell.low)}..{format_value(cell.high)}</small></td>"


def _receipt(results: Mapping[str, Any]) -> str:
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
    return f"<h2>Receipt</h2>\n{facts_table(facts)}"


def _how(study: DiscrepancyStudy) -> str:
    settings = study.settings
    compared = "tags" if settings["level"] == "tags" else "all tags of a dimension as one text"
    how = "" if settings["level"] == "joined" else f", {settings['aggregation']}"
    normalized = ", divided by self-similarity" if settings["normalize_by_self"] else ""
    encoder = settings["encoder"]
    revision = f" at {encoder['revision']}" if encoder["revision"] else ""
    return f"{compared}{how}{normalized}, encoder {encoder['name']}{revision}"


def _legend(study: DiscrepancyStudy) -> str:
    return (
        f"Each cell: mean similarity and {study.settings['confidence']:.0%} interval, clustered by song; lower is a "
        "larger discrepancy. In bold: differs from the other songs after Holm's correction."
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
    return next(found.english for found in GROUPINGS[grouping].groups if found.name == group)


def _value(cell: Cell) -> str:
    return format_value(cell.similarity) + ("*" if cell.p_adjusted < SIGNIFICANCE else " ")


def _with_interval(cell: Cell) -> str:
    value = format_value(cell.similarity)
    marked = f"**{value}**" if cell.p_adjusted < SIGNIFICANCE else value
    return f"{marked} ({format_value(cell.low)}..{format_value(cell.high)})"


def _differences(study: DiscrepancyStudy) -> str:
    head, lines = _found_differences(study)
    return markdown_rows([head, ["---"] * 3 + ["---:"] * 5, *lines]) if lines else "None."


def _found_differences(study: DiscrepancyStudy) -> tuple[list[str], list[list[str]]]:
    """Return names of columns, and a row for each group that differs from the other songs."""
    found = sorted((cell for cell in study.cells if cell.p_adjusted < SIGNIFICANCE), key=lambda cell: cell.p_adjusted)
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
        for cell in found
    ]
    return head, lines
