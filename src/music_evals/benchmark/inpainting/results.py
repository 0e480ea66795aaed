"""What a run found, as one value that JSON can hold, and as text tables. Made from records alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from music_evals.benchmark.cells import (
    ARROWS,
    SIGNIFICANCE,
    align,
    format_interval,
    format_value,
    markdown_name,
    markdown_rows,
    plain,
)
from music_evals.benchmark.inpainting.aggregate import RANKING, Scores, best_baselines, summarize
from music_evals.benchmark.inpainting.runner import NLL
from music_evals.benchmark.published import published_section
from music_evals.benchmark.versions import on_kernels
from music_evals.metrics.catalogue import INPAINTING_METRICS, metric_of

__all__ = [
    "FLOOR",
    "HEADINGS",
    "SUBSETS",
    "build_results",
    "columns",
    "format_note",
    "format_scored",
    "mark",
    "markdown_table",
    "ordered_systems",
    "text_report",
    "verdict",
]

OFFICIAL = "official"

HEADINGS = {name: metric_of(name).heading for name in (RANKING, *INPAINTING_METRICS, NLL)}
"""Metric -> short heading, in the order of the tables: what ranks stands first."""

SUBSETS = {
    "all": "all windows",
    "unseen": "windows whose middle does not occur in the training split",
}

_VERDICTS = {"+": "significantly better than", "-": "significantly worse than"}

FLOOR = (
    "The noise floor is what a divergence is on average when reference and prediction are swapped at random, song by "
    "song; about half of pure noise lies above it."
)

LEGEND = (
    "+ better, - worse than the best baseline of that metric (=), chosen on validation; paired test by song, "
    f"Holm-corrected p < {SIGNIFICANCE}"
)


def build_results(
    scores: Scores,
    validation: Scores | None = None,
    *,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the content of results.json.

    Parameters
    ----------
    scores
        Records of the judged split.
    validation
        Records of the baselines on the validation split; None makes no tests.
    confidence, n_resamples, seed
        Of the intervals.

    Returns
    -------
    dict
        ``dataset``, ``systems``, ``metrics``, ``best_baseline``, ``tables`` (see `aggregate.summarize`), ``failures``,
        ``versions``, ``kernels`` that made the scores and what else the header of the records says; with the official
        protocol also ``published``.
        Undefined numbers are None, infinite ones ``"inf"``. Equal records give equal results, byte for byte.

    """
    header = {key: value for key, value in scores.header.items() if key not in {"kind", "systems"}}
    best = {} if validation is None else best_baselines(validation)
    chosen_on = None if validation is None else validation.header["dataset"]
    tables = summarize(scores, best, confidence=confidence, n_resamples=n_resamples, seed=seed)
    made_by = (*scores.kernels, *(validation.kernels if validation else ()))
    results = {
        **header,
        "kernels": list(dict.fromkeys(made_by)),
        "intervals": {"confidence": confidence, "n_resamples": n_resamples, "seed": seed, "clusters": "song"},
        "systems": scores.header["systems"],
        "metrics": {
            name: {"direction": info.direction, "low": info.low, "high": info.high, "kind": info.kind}
            for name, info in (*INPAINTING_METRICS.items(), (NLL, metric_of(NLL)))
        },
        "ranked_by": RANKING,
        "best_baseline": best,
        "best_baseline_chosen_on": chosen_on,
        "tables": tables,
        "failures": scores.failures,
        "published": published_section() if header.get("protocol") == OFFICIAL else None,
    }
    content: dict[str, Any] = plain(results)
    return content


def columns(table: Mapping[str, Any]) -> list[str]:
    """Return the metrics of a table in the order of `HEADINGS`; NLL where any system has it."""
    return [name for name in HEADINGS if any(name in cells for cells in table["scores"].values())]


def ordered_systems(results: Mapping[str, Any], table: Mapping[str, Any]) -> list[str]:
    """Return the ranked systems, best first, then the leaking ones and the control."""
    outside = [name for name in results["systems"] if name not in table["ranking"]]
    leaking = [name for name in outside if results["systems"][name]["role"] == "leaking"]
    return [*table["ranking"], *leaking, *(name for name in outside if name not in leaking)]


def format_note(cell: Mapping[str, Any]) -> str:
    """Return what belongs beside a score: the noise floor of a divergence, the items that count where not all do."""
    floor = f"floor {format_value(cell['null'])}" if "null" in cell else ""
    counted = f"n {cell['n_defined']}/{cell['n']}" if cell["n_defined"] < cell["n"] else ""
    return ", ".join(filter(None, [floor, counted]))


def format_scored(table: Mapping[str, Any], system: str) -> str:
    """Return what belongs beside the name of a system that failed on some items, e.g. ``[5/6 scored]``."""
    cell = table["scores"][system][RANKING]
    return f" [{cell['n_scored']}/{cell['n']} scored]" if cell["n_scored"] < cell["n"] else ""


def mark(results: Mapping[str, Any], system: str, metric: str, cell: Mapping[str, Any]) -> str:
    """Return how a score stands to the best baseline: ``+``, ``-``, ``=`` for that baseline itself, or nothing."""
    if results["best_baseline"].get(metric) == system:
        return "="
    test = cell.get("test")
    if not test or test["p_holm"] is None or test["p_holm"] >= SIGNIFICANCE:
        return ""
    higher = results["metrics"][metric]["direction"] == "higher"
    return "+" if (test["difference"] > 0) == higher else "-"


def verdict(results: Mapping[str, Any], system: str, metric: str, cell: Mapping[str, Any]) -> str:
    """Return the words for `mark`, to stand before "the best baseline"."""
    return _VERDICTS.get(mark(results, system, metric, cell), "not significantly different from")


def text_report(results: Mapping[str, Any]) -> str:
    """Return all tables as text for a terminal: values with their marks, intervals and notes below them."""
    parts = []
    for subset, table in results["tables"].items():
        parts.append(f"{_title(results)}: {SUBSETS[subset]}, {table['n_items']} items, {table['n_songs']} songs")
        parts.append(_text_table(results, table))
    confidence = f"{100 * results['intervals']['confidence']:g} %"
    parts.append(
        f"Below each score: its {confidence} interval, clustered by song; the noise floor of a divergence; how many "
        f"items define it, where not all do. ^ higher, v lower is better. Ranked by {results['ranked_by']}; who failed "
        f"on items comes last. {FLOOR}"
    )
    if results["best_baseline"]:
        parts.append(LEGEND)
    parts.extend(f"Note: {note}." for note in on_kernels(results.get("kernels", ())))
    if results["published"]:
        parts.append(_published_text(results["published"]))
    return "\n".join(parts)


def _title(results: Mapping[str, Any]) -> str:
    dataset = results["dataset"]
    place = " ".join(part for part in (dataset["id"], dataset["config"], dataset["split"]) if part)
    return f"{place}, variant {results['variant']}"


def _text_table(results: Mapping[str, Any], table: Mapping[str, Any]) -> str:
    names = columns(table)
    arrows = {"higher": "^", "lower": "v"}
    lines = [["", *(f"{HEADINGS[name]} {arrows[results['metrics'][name]['direction']]}" for name in names)]]
    for system in ordered_systems(results, table):
        cells = [table["scores"][system].get(name) for name in names]
        label = f"({system})" if results["systems"][system]["role"] == "control" else system
        marked = [
            f"{format_value(cell['value'])}{mark(results, system, name, cell) or ' '}" if cell else ""
            for name, cell in zip(names, cells, strict=True)
        ]
        lines.append([label + format_scored(table, system), *marked])
        lines.append(["", *(format_interval(cell) if cell else "" for cell in cells)])
        lines.append(["", *(format_note(cell) if cell else "" for cell in cells)])
    return align(lines)


def _published_text(published: Mapping[str, Any]) -> str:
    names = [name for name in HEADINGS if any(name in row for row in published["table"].values())]
    lines = [["", *(HEADINGS[name] for name in names)]]
    lines += [[system, *(format_value(row.get(name)) for name in names)] for system, row in published["table"].items()]
    reasons = [f"- {name}: {reason}" for name, reason in published["differences"].items()]
    return "\n".join([f"Published ({published['source']}):", align(lines), "Why ours differ:", *reasons])


def markdown_table(results: Mapping[str, Any], subset: str = "all", systems: Iterable[str] | None = None) -> str:
    """Return one table as Markdown: value, mark and interval in each cell.

    Parameters
    ----------
    results
        From `build_results`.
    subset
        Key of `SUBSETS`.
    systems
        Which to show; None for all.

    """
    table = results["tables"][subset]
    names = columns(table)
    head = ["system", *(f"{HEADINGS[name]} {ARROWS[results['metrics'][name]['direction']]}" for name in names)]
    lines = [head, ["---", *("---:" for _ in names)]]
    shown = None if systems is None else set(systems)
    for system in ordered_systems(results, table):
        if shown is not None and system not in shown:
            continue
        row = [markdown_name(system) + format_scored(table, system)]
        for name in names:
            cell = table["scores"][system].get(name)
            row.append(_markdown_cell(results, system, name, cell) if cell else "")
        lines.append(row)
    return markdown_rows(lines)


def _markdown_cell(results: Mapping[str, Any], system: str, metric: str, cell: Mapping[str, Any]) -> str:
    value = f"{format_value(cell['value'])} {mark(results, system, metric, cell)}".rstrip()
    beside = "; ".join(filter(None, [format_interval(cell), format_note(cell)]))
    return f"{value} ({beside})" if beside else value
