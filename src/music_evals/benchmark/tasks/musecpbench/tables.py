"""The tables of the study: by facet, by task of the instruction and by backbone, and the published one beside them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from music_evals.annotations import FACETS, EditorInfo
from music_evals.benchmark.formats import format_interval, format_value, markdown_name, markdown_rows
from music_evals.benchmark.published import published_preservation
from music_evals.benchmark.score_table import ScoreTable
from music_evals.benchmark.tasks.musecpbench.findings import findings_table, weigh_findings
from music_evals.metrics.catalogue import PRESERVATION_METRICS
from music_evals.pipelines.intervals import intervals_of_means
from music_evals.stats.multiplicity import holm

PUBLISHED_AS: Mapping[str, tuple[str, int]] = {
    "Vanilla": ("musicgen", 20),
    "MusicGen": ("musicgen_melody", 100),
    "MusiConGen": ("musicongen", 100),
    "MusicMagus": ("musicmagus", 60),
    "ZETA": ("zeta", 697),
    "RefinPaint": ("refinpaint", 300),
}
"""Row of the published table -> its system here, and over how many edits it says that it is."""

PUBLISHED_PROMPTS = 696
"""Target prompts of MedleyMDPrompts as published; the paper has 697, which are the lines of the file with its head."""

Cells = dict[str, dict[str, Any]]


def study(
    results: Mapping[str, Any],
    score_table: ScoreTable,
    infos: Mapping[str, EditorInfo],
    edits: Sequence[Mapping[str, Any]],
    about: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the tables of a study, as musecpbench.json holds them, beside what is `about` it.

    `results` and `score_table` are of the run of preservation over the edits of all systems, `infos` of those that ran.
    ``facets`` are 0 at unrelated and 1 at the same music; ``plane`` sets success against them, where targets are named,
    as `preservation.plane` has it; ``unchanged`` are those that none of the edits was meant to
    change, and the mean over them. Means have intervals clustered by original. Differences are over edits of the same
    sources, controls left out, with p corrected by Holm.
    """
    judged = [name for name in infos if name in score_table.systems]
    instructions = {(str(row["system"]), str(row["item"])): row["instruction"] for row in edits if "error" not in row}
    names = [name for name in score_table.metrics if name in PRESERVATION_METRICS]
    scores = (results.get("facets") or {}).get("scores", {})
    tasks = sorted({str(instruction["task"]) for instruction in instructions.values()})
    items: dict[tuple[str, str], set[str]] = {}  # system and task -> its edits
    intended: dict[str, set[str]] = {name: set() for name in judged}
    for (name, item), instruction in instructions.items():
        items.setdefault((name, str(instruction["task"])), set()).add(item)
        if name in intended:
            intended[name] |= {*(instruction["intended_facets"] or infos[name].changes)}
    unchanged: dict[str, Any] = {}  # the mean over facets; no value where one of them has none
    for name in judged:
        if name in scores:
            facets = [facet for facet in FACETS if facet in scores[name] and facet not in intended[name]]
            values = [scores[name][facet]["value"] for facet in facets]
            mean = float(np.mean([math.nan if value is None else float(value) for value in values or [None]]))
            unchanged[name] = {"facets": facets, "value": mean}
    compared = [name for name in judged if not infos[name].control]
    backbones = list(dict.fromkeys(infos[name].backbone for name in compared))
    overall = {
        name: _means(score_table, names, {name: None}) for name in dict.fromkeys((*score_table.controls, *judged))
    }
    return {
        **about,
        "systems": {
            name: {
                "backbone": infos[name].backbone,
                "control": infos[name].control,
                "n": sum(row["system"] == name for row in edits),
                "n_failed": sum(row["system"] == name and "error" in row for row in edits),
            }
            for name in infos
        },
        "facets": {name: scores[name] for name in judged if name in scores},
        "unchanged": unchanged,
        **({"plane": results["plane"]} if "plane" in results else {}),
        "overall": overall,
        "tasks": {
            task: {
                name: _means(score_table, names, {name: items[name, task]}) for name in judged if (name, task) in items
            }
            for task in tasks
        },
        "backbones": {
            kind: _means(score_table, names, {name: None for name in compared if infos[name].backbone == kind})
            for kind in backbones
        },
        "findings": weigh_findings(score_table),
        "comparisons": _comparisons(results, set(compared), names),
        "published": _published(overall, about, names),
    }


def _means(score_table: ScoreTable, names: Sequence[str], chosen: Mapping[str, Collection[str] | None]) -> Cells:
    """Return the means of some edits of some systems; clusters are originals, so that systems may be put together."""
    values, groups = [], []
    for system, items in chosen.items():
        pairs = score_table.scored(system)
        if items is not None:
            held = score_table.columns["item"].codes_of(sorted(items))
            pairs = pairs.take(np.isin(pairs.codes("item"), held))
        values.append(pairs.values(*names))
        groups.append(pairs.codes("group"))
    table = np.concatenate(values)
    if not len(table):
        return {}
    made = intervals_of_means(names, table, np.concatenate(groups), 0.95)
    defined = np.count_nonzero(~np.isnan(table), axis=0)
    return {
        name: {"value": interval.estimate, "low": interval.low, "high": interval.high, "n": int(n), "n_all": len(table)}
        for name, interval, n in zip(names, made, defined, strict=True)
    }


def _comparisons(results: Mapping[str, Any], systems: Collection[str], names: Collection[str]) -> list[dict[str, Any]]:
    comparisons = [
        dict(test)
        for test in results.get("comparisons", ())
        if {test["a"], test["b"]} <= set(systems) and test["metric"] in names
    ]
    known = [test for test in comparisons if test["p_value"] is not None and not math.isnan(test["p_value"])]
    for test, p in zip(known, holm([test["p_value"] for test in known]) if known else (), strict=True):
        test["p_holm"] = float(p)
    return comparisons


def _published(overall: Mapping[str, Cells], about: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    printed = published_preservation(names)
    rows = {}
    for label, cells in printed["table"].items():
        system = PUBLISHED_AS[label][0]
        rows[label] = {
            metric: {
                "printed": value,
                "mark": printed["marks"].get(label, {}).get(metric, ""),
                "ours": overall.get(system, {}).get(metric, {}).get("value"),
                "why_not": list(_why_not(label, metric, overall.get(system, {}).get(metric), printed["table"], about)),
            }
            for metric, value in cells.items()
        }
    return {"source": printed["source"], "rows": rows, "systems": {row: PUBLISHED_AS[row][0] for row in rows}}


def _why_not(
    label: str,
    metric: str,
    ours: Mapping[str, Any] | None,
    table: Mapping[str, Mapping[str, float]],
    about: Mapping[str, Any],
) -> Iterator[str]:
    """Yield why a printed cell is not compared with ours: other edits are behind it, or it measures something else."""
    system, n_printed = PUBLISHED_AS[label]
    if ours is None:
        yield f"{system} did not run here: {about['left_out'].get(system, 'it was not asked for')}"
    elif about["protocol"] != "paper":
        yield "other sources than the paper's"
    elif ours["n_all"] != n_printed:
        yield f"{ours['n_all']} edits here, {n_printed} in the paper"
    if n_printed == PUBLISHED_PROMPTS + 1:
        yield f"the paper's {n_printed} edits do not add up: its source holds {PUBLISHED_PROMPTS} prompts"
    # looked up in the printed numbers and in the variant of this run
    facet, variant = PRESERVATION_METRICS[metric].facet, about["variant"]
    ones = [label for label, cells in table.items() if cells.get("boundary_f_measure") == 1]
    if facet == "structure" and len(ones) >= len(table) - 1:
        yield f"boundary F is 1.000 in {len(ones)} of {len(table)} printed rows, as where files are cut by the clock"
    if facet == "melody" and variant != "official":
        yield "printed with pYIN on mixtures and motifs of frames; variant=official would do the same"
    if metric == "chroma_dtw_similarity" and variant != "official":
        yield "printed without taking the mean chroma away"


def markdown(results: Mapping[str, Any]) -> str:
    """Return the tables of a study as Markdown."""
    tables = {"All metrics": results["overall"]}
    tables |= {f"Instructions of the task {task}": cells for task, cells in results["tasks"].items()}
    tables["By backbone, controls left out"] = results["backbones"]
    parts = [
        f"# MuseCPBench, protocol {results['protocol']}",
        "## By facet",
        "0 is unrelated music, 1 the same music. The last columns leave out what the edits were meant to change.",
        facet_table(results),
    ]
    systems = results["systems"]
    outside = {name for name in results["overall"] if name not in systems or systems[name]["control"]}
    for title, cells in tables.items():
        parts.append(f"## {title}")
        names = list(dict.fromkeys(name for row in cells.values() for name in row))
        lines = [["", *(PRESERVATION_METRICS[name].heading for name in names), "n"], ["---"] * (len(names) + 2)]
        for name, row in cells.items():
            label = f"{markdown_name(name)} (control)" if name in outside else markdown_name(name)
            n = max((cell["n_all"] for cell in row.values()), default=0)
            lines.append([label, *(_with_interval(row.get(metric)) for metric in names), str(n)])
        parts.append(markdown_rows(lines))
    parts.append("## What the paper found, on this run")
    parts.append(
        "Systems are compared over the sources that both edited; the intervals of a finding hold together at 95 %. The "
        "parts with their intervals are in musecpbench.json."
    )
    parts.append(findings_table(results["findings"]))
    if results["comparisons"]:
        parts.append("## Differences over edits of the same sources")
        lines = [["a", "b", "metric", "a - b", "n", "p (Holm)"], ["---"] * 6]
        for test in results["comparisons"]:
            interval = {"value": test["difference"], "low": test["low"], "high": test["high"]}
            who = (markdown_name(test["a"]), markdown_name(test["b"]), PRESERVATION_METRICS[test["metric"]].heading)
            lines.append([*who, _with_interval(interval), str(test["n"]), format_value(test.get("p_holm"))])
        parts.append(markdown_rows(lines))
    parts.append("## The published table beside ours")
    parts.append(
        f"{results['published']['source']}. A cell is printed / ours; of the printed values the best is bold, the "
        "second in italics. No cell is compared without its reasons below."
    )
    parts.append(_published_table(results["published"]))
    if results["left_out"]:
        parts.append("## What did not run")
        parts.append("\n".join(f"- {markdown_name(name)}: {why}" for name, why in results["left_out"].items()))
    return "\n\n".join(parts) + "\n"


def facet_table(results: Mapping[str, Any]) -> str:
    """Return the scores of the facets as a Markdown table, a row a system."""
    lines = [["system", "backbone", *FACETS, "unchanged", "over"], ["---"] * (len(FACETS) + 4)]
    for name, cells in results["facets"].items():
        rest, about = results["unchanged"][name], results["systems"][name]
        values = [_with_interval(cells.get(facet)) for facet in FACETS]
        kind = "control" if about["control"] else about["backbone"]
        lines.append([markdown_name(name), kind, *values, format_value(rest["value"]), ", ".join(rest["facets"])])
    return markdown_rows(lines)


def _with_interval(cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return "n/a"
    return f"{format_value(cell['value'])} {format_interval(cell)}".rstrip()


def _published_table(published: Mapping[str, Any]) -> str:
    rows = published["rows"]
    names = list(next(iter(rows.values()))) if rows else []
    lines = [["", *(PRESERVATION_METRICS[name].heading for name in names)], ["---"] * (len(names) + 1)]
    reasons: dict[str, list[str]] = {}
    for label, cells in rows.items():
        shown = []
        for name, cell in cells.items():
            around = {"best": "**", "second": "_"}.get(cell["mark"], "")
            shown.append(f"{around}{format_value(cell['printed'])}{around} / {format_value(cell['ours'])}")
            for why in cell["why_not"]:
                reasons.setdefault(why, []).append(f"{label} {PRESERVATION_METRICS[name].heading}")
        lines.append([label, *shown])
    notes = [
        f"- {why}: {', '.join(cells) if len(cells) < len(names) else f'{len(cells)} cells, such as {cells[0]}'}"
        for why, cells in reasons.items()
    ]
    return "\n\n".join([markdown_rows(lines), "\n".join(notes)])
