"""The report of a preservation run: one HTML file that needs nothing but a browser. Made from records and results."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from music_evals.benchmark import canvas
from music_evals.benchmark._page import STYLE, facts_table, page, plain_table, published_table
from music_evals.benchmark.preservation_plots import PICTURE_STYLE, RIM, outward, radar, timeline
from music_evals.benchmark.preservation_results import Found
from music_evals.benchmark.preservation_tables import (
    cautions,
    cell_note,
    heading,
    legend,
    significant,
    summary,
    tables,
)
from music_evals.benchmark.tables import format_interval, format_value
from music_evals.metrics.scales import features_of

__all__ = ["SHOWN_PAIRS", "render_report", "worst_pairs"]

SHOWN_PAIRS = 10
"""Pairs with timelines by default: the worst of each system, to equal shares."""

LANES = {"beats": "beats", "chords": "chords", "segments": "sections", "melody": "melody"}
"""Feature that is drawn -> its word."""

LISTED = 200
"""Rows of a list of what is undefined or remarked on; the records hold all."""

LEAST_AXES = 3  # two axes make no radar


def render_report(results: Mapping[str, Any], found: Found, *, timelines: int = SHOWN_PAIRS) -> str:
    """Return the page.

    Parameters
    ----------
    results
        From `preservation_results.build_results`.
    found
        The records that the results were made of.
    timelines
        Pairs to draw, and at least one of each system; 0 for none.

    Returns
    -------
    str
        HTML without any outside reference.

    Raises
    ------
    MissingBackendError
        matplotlib is not installed.

    """
    canvas.check_backend()
    title = f"What the edits preserved: {results['dataset']['id']}"
    sections = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="muted">{"<br>".join(map(escape, summary(results).splitlines()))}</p>',
        *(_table(results, title, names) for title, names in tables(results).items()),
        f'<p class="muted">{escape(legend(results, best="★", control="in grey"))}</p>',
        _cautions(results),
        _comparisons(results),
        _radars(results),
        _published(results),
        _timelines(results, found, timelines),
        _failures(results["failures"]),
        _listed("Undefined", "Scores that a pair does not define; they are in no mean.", results["undefined"]),
        _listed("Remarks", "What a reader should know of a pair.", _remarks(results)),
        _receipt(results, found),
    ]
    return page(title, sections, style=STYLE + PICTURE_STYLE)


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
        "<h2>Systems compared</h2>\n<p>On the items that two systems share, with the same original: the two are "
        f"swapped within whole groups; Holm's correction over all {len(tests)} tests.</p>\n"
        f"<details><summary>{len(marked)} of {len(tests)} differences are significant</summary>{table}</details>"
    )


def _radars(results: Mapping[str, Any]) -> str:
    names = [name for name in results["metrics"] if results["scales"][name]["direction"] != "zero"]
    if len(names) < LEAST_AXES:
        return ""
    scores = results["scores"]
    controls = {name: scores[name] for name, about in results["systems"].items() if about["role"] == "control"}
    drawn = [
        f"<div><h3>{escape(system)}</h3>\n"
        + radar(f"radar-{place}", system, {name: scores[system][name] for name in names}, controls, results["scales"])
        + "</div>"
        for place, (system, about) in enumerate(results["systems"].items())
        if about["role"] == "system"
    ]
    centre = "; ".join(f"{results['scales'][name]['title']}: {bound:g}" for name, bound in RIM.items() if name in names)
    intro = (
        "The rim is the best value of each metric, the centre its worst, linear in between; what is worse than chance "
        f"lies in the centre{f', and so does {centre} and more' if centre else ''}. Read a score between the two "
        "controls: a metric whose controls lie close together says little."
    )
    pictures = "\n".join(drawn)
    return f'<h2>At a glance</h2>\n<p>{escape(intro)}</p>\n<div class="radars">{pictures}</div>'


def _published(results: Mapping[str, Any]) -> str:
    if not any(results["published"]["table"].values()):
        return ""
    headings = {name: heading(results, name) for name in results["metrics"]}
    return published_table(results["published"], headings, "Before you compare anything with it:")


def worst_pairs(results: Mapping[str, Any], found: Found) -> list[tuple[Mapping[str, Any], float]]:
    """Return the pairs that can be drawn, with the mean of their places on the radar: by system, the worst first."""
    names = [name for name in results["metrics"] if results["scales"][name]["direction"] != "zero"]
    found_pairs: list[tuple[Mapping[str, Any], float]] = []
    for system, about in results["systems"].items():
        judged = []
        for pair in found.pairs.get(system, []) if about["role"] == "system" else []:
            values = [(name, found.value(pair["item"], system, name)) for name in names if "error" not in pair]
            places = [outward(name, value, results["scales"][name]) for name, value in values if not math.isnan(value)]
            if places and all(pair[side]["content"] in found.outlines for side in ("reference", "estimate")):
                judged.append((pair, math.fsum(places) / len(places)))
        found_pairs += sorted(judged, key=lambda row: (row[1], row[0]["item"]))
    return found_pairs


def _shares(pairs: Sequence[tuple[Mapping[str, Any], float]], n: int) -> list[tuple[Mapping[str, Any], float]]:
    """Return the first pairs of each system, to equal shares: `n` of all, and at least one of each."""
    by_system = [list(rows) for _, rows in itertools.groupby(pairs, lambda row: row[0]["system"])]
    turns = [(turn, place) for place, rows in enumerate(by_system) for turn in range(len(rows))]
    chosen = sorted(turns)[: max(n, len(by_system)) if n else 0]
    return [by_system[place][turn] for turn, place in sorted(chosen, key=lambda found: found[::-1])]


def _timelines(results: Mapping[str, Any], found: Found, n: int) -> str:
    pairs = worst_pairs(results, found)
    chosen = _shares(pairs, n)
    if not chosen:
        return ""
    drawn = []
    for pair, mean in chosen:
        sides = [found.outlines[pair[side]["content"]] for side in ("reference", "estimate")]
        label = f"{pair['item']}, {pair['system']}"
        scores = ", ".join(
            f"{results['scales'][name]['title']} {format_value(found.value(pair['item'], pair['system'], name))}"
            for name in results["metrics"]
        )
        picture = timeline(*sides, label=f"Timeline of {label}")
        drawn.append(
            f'<h3>{escape(label)}</h3>\n<p class="muted">mean place {mean:.2f}; {escape(scores)}</p>\n{picture}'
        )
    intro = (
        f"{len(drawn)} of {len(pairs)} pairs: the worst of each system, by the mean of their places on the radar. "
        "Orange: chords that differ, beats without a partner within 70 ms, section boundaries without one within "
        "0.5 s, notes of the melody that the other file does not begin with the same pitch within 100 ms. The melody "
        f"of the original is drawn thick, that of the edit thin.{_left_out(results)}"
    )
    return f"<h2>Pairs</h2>\n<p>{intro}</p>\n" + "\n".join(drawn)


def _left_out(results: Mapping[str, Any]) -> str:
    """Say which lanes are missing because nothing in this run needs them."""
    names = (*results["metrics"], *results["companions"])
    needed = {feature for name in names for feature in features_of(name, results["variant"])}
    missing = [word for feature, word in LANES.items() if feature not in needed]
    if not missing:
        return ""
    official = results["variant"] == "official" and "melody" in missing
    why = "; the official motifs are made of pitch frame by frame, not of notes" if official else ""
    return f" Without a lane, since no score of this run compares them: {', '.join(missing)}{why}."


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


def _receipt(results: Mapping[str, Any], found: Found) -> str:
    dataset = results["dataset"]
    extractors = results["extractors"]
    facts = {
        "dataset": " / ".join(str(dataset[key]) for key in ("id", "config", "split") if dataset[key]),
        **{name: value for name, value in dataset.items() if name not in {"id", "config", "split"} and value},
        "variant": results["variant"],
        "policy": extractors.get("policy", "none"),
        "intervals": "{confidence:.0%}, {n_resamples} resamples, seed {seed}, clustered by {clusters}".format(
            **results["intervals"]
        ),
        "wall time": f"{found.wall_time_sec:.0f} s",
        **{f"version of {name}": version for name, version in results["versions"].items()},
    }
    backends = ([escape(name), escape(_told(told))] for name, told in extractors["features"].items())
    systems = (
        [escape(name), escape(about["role"]), escape(", ".join(about["entrances"])), str(about["n_pairs"])]
        for name, about in results["systems"].items()
    )
    return (
        f"<h2>Receipt</h2>\n{facts_table(facts)}\n{plain_table(('feature', 'extractor'), backends)}\n"
        f"{plain_table(('system', 'role', 'entrance', 'pairs'), systems)}"
    )


def _told(about: Mapping[str, Any]) -> str:
    return "; ".join(f"{key}: {value}" for key, value in about.items() if value not in ({}, [], "", None))
