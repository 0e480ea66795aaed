"""The page that all benchmarks of `score_results` share: one HTML file that needs nothing but a browser."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from music_evals.benchmark.cells import format_interval, format_value
from music_evals.benchmark.page import STYLE, facts_table, page, plain_table, published_table
from music_evals.benchmark.results import Found
from music_evals.benchmark.tables import cautions, cell_note, heading, legend, significant, summary, tables

__all__ = ["receipt_section", "score_page", "shares"]

LISTED = 200
"""Rows of a list of what is undefined or remarked on; the records hold all."""


def score_page(
    results: Mapping[str, Any],
    *,
    pictures: Sequence[str] = (),
    items: Sequence[str] = (),
    receipt: str,
    style: str = "",
) -> str:
    """Return the page.

    Parameters
    ----------
    results
        From `score_results.build_results`.
    pictures, items
        Sections of this benchmark's own: on systems, below the comparisons; on single items, below the published table.
    receipt
        From `receipt_section`.
    style
        What the own sections need, after the style of the page.

    Returns
    -------
    str
        HTML without any outside reference.

    """
    wording = results["wording"]
    title = f"{wording['title']}: {results['dataset']['id']}"
    n_items = wording["items"].removesuffix("s")
    sections = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="muted">{"<br>".join(map(escape, summary(results).splitlines()))}</p>',
        *(_table(results, title, names) for title, names in tables(results).items()),
        f'<p class="muted">{escape(legend(results, best="★", control="in grey"))}</p>',
        _cautions(results),
        _comparisons(results),
        *pictures,
        _published(results),
        *items,
        _failures(results["failures"]),
        _listed("Undefined", f"Scores that a {n_items} does not define; they are in no mean.", results["undefined"]),
        _listed("Remarks", f"What a reader should know of a {n_items}.", _remarks(results)),
        receipt,
    ]
    return page(title, sections, style=STYLE + style)


def _cautions(results: Mapping[str, Any]) -> str:
    told = "".join(f"<li>{escape(caution)}</li>" for caution in cautions(results))
    return f"<h2>Notes</h2>\n<ul>{told}</ul>" if told else ""


def _table(results: Mapping[str, Any], title: str, names: Sequence[str]) -> str:
    head = "".join(f'<th scope="col">{escape(heading(results, name))}</th>' for name in names)
    rows = []
    for system, about in results["systems"].items():
        kind = "outside" if about["role"] == "control" else ""
        cells = "".join(_cell(results, system, name) for name in names)
        rows.append(f'<tr class="{kind}"><th scope="row">{escape(system)}</th>{cells}</tr>')
    return (
        f'<h2>{escape(title)}</h2>\n<div class="scroll"><table><thead><tr><th scope="col">system</th>'
        f"{head}</tr></thead><tbody>\n{''.join(rows)}\n</tbody></table></div>"
    )


def _cell(results: Mapping[str, Any], system: str, name: str) -> str:
    cell = results["scores"][system][name]
    best = ' <span aria-label="best">★</span>' if system in results["best"].get(name, ()) else ""
    small = "".join(f"<small>{line}</small>" for line in (format_interval(cell), cell_note(cell)) if line)
    return f"<td>{format_value(cell['value'])}{best}{small}</td>"


def _comparisons(results: Mapping[str, Any]) -> str:
    tests = results["comparisons"]
    if not tests:
        return ""
    marked = {id(test) for test in significant(results)}
    rows = []
    for test in tests:
        p_value = "n/a" if test["p_holm"] is None else f"{test['p_holm']:.4f}"
        shown = f"<b>{p_value}</b>" if id(test) in marked else p_value
        difference = "n/a" if test["difference"] is None else f"{test['difference']:+.3f}"
        title = results["scales"][test["metric"]]["title"]
        rows.append([escape(test["a"]), escape(test["b"]), escape(title), difference, shown, str(test["n"])])
    table = plain_table(("first", "second", "score", "first - second", "p, corrected", "items"), rows)
    return (
        "<h2>Systems compared</h2>\n<p>On the items that two systems share, with the same reference: the two are "
        f"swapped within whole groups; Holm's correction over all {len(tests)} tests.</p>\n"
        f"<details><summary>{len(marked)} of {len(tests)} differences are significant</summary>{table}</details>"
    )


def _published(results: Mapping[str, Any]) -> str:
    if not any(results["published"]["table"].values()):
        return ""
    headings = {name: heading(results, name) for name in results["metrics"]}
    return published_table(results["published"], headings, "Before you compare anything with it:")


def shares(pairs: Sequence[tuple[Mapping[str, Any], float]], n: int) -> list[tuple[Mapping[str, Any], float]]:
    """Return the first pairs of each system, to equal shares: `n` of all, and at least one of each; none for 0."""
    by_system = [list(rows) for _, rows in itertools.groupby(pairs, lambda row: row[0]["system"])]
    turns = [(turn, place) for place, rows in enumerate(by_system) for turn in range(len(rows))]
    chosen = sorted(turns)[: max(n, len(by_system)) if n else 0]
    return [by_system[place][turn] for turn, place in sorted(chosen, key=lambda found: found[::-1])]


def _failures(failures: Sequence[Mapping[str, Any]]) -> str:
    if not failures:
        return ""
    rows = (
        [escape(str(row["item"])), escape(str(row["system"])), escape(row["metric"] or "all"), escape(row["error"])]
        for row in failures
    )
    return (
        f"<h2>Failures</h2>\n<p>{len(failures)} results failed and are in no mean.</p>\n"
        f"{plain_table(('item', 'system', 'score', 'reason'), rows)}"
    )


def _remarks(results: Mapping[str, Any]) -> list[dict[str, str]]:
    return [{**row, "reason": "; ".join(row["notes"])} for row in results["notes"]]


def _listed(title: str, intro: str, found: Sequence[Mapping[str, Any]]) -> str:
    if not found:
        return ""
    rows = (
        [escape(row["item"]), escape(row["system"]), escape(row.get("metric", "all")), escape(row["reason"])]
        for row in found[:LISTED]
    )
    more = f"<p>and {len(found) - LISTED} more in the records</p>" if len(found) > LISTED else ""
    return (
        f"<h2>{title}</h2>\n<p>{intro}</p>\n<details><summary>{len(found)} rows</summary>"
        f"{plain_table(('item', 'system', 'score', 'reason'), rows)}{more}</details>"
    )


def receipt_section(results: Mapping[str, Any], found: Found, facts: Mapping[str, Any], *tables: str) -> str:
    """Return what the numbers depend on.

    Parameters
    ----------
    results, found
        Results, and the records that they were made of.
    facts
        Name -> value of what this benchmark was run with.
    tables
        Further tables of its own.

    """
    dataset = results["dataset"]
    shown = {
        "dataset": " / ".join(str(dataset[key]) for key in ("id", "config", "split") if dataset[key]),
        **{name: value for name, value in dataset.items() if name not in {"id", "config", "split"} and value},
        **facts,
        "intervals": "{confidence:.0%}, {n_resamples} resamples, seed {seed}, clustered by {clusters}".format(
            **results["intervals"]
        ),
        "wall time": f"{found.wall_time_sec:.0f} s",
        "processor kernels": "; ".join(results.get("kernels", ())),
        **{f"version of {name}": version for name, version in results["versions"].items()},
    }
    systems = (
        [escape(name), escape(about["role"]), escape(", ".join(about["entrances"])), str(about["n_pairs"])]
        for name, about in results["systems"].items()
    )
    own = "\n".join([*tables, plain_table(("system", "role", "entrance", results["wording"]["items"]), systems)])
    return f"<h2>Receipt</h2>\n{facts_table(shown)}\n{own}"
