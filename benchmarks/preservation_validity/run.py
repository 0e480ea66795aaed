"""What each metric of music context preservation can and cannot see, measured on `known_edits`.

``python benchmarks/preservation_validity/run.py`` renders every edit with both renderers, extracts, scores, and writes
anew evidence.csv, responses.csv, the pictures, the tables of README.md and the section "Validity" of each metric's
card. A run that was stopped goes on where it stood.

``--write`` makes the section of the cards of auxiliary metrics from responses.csv alone: means, if measured.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from analyse import Evidence, evidence, load_records, responses
from measure import TRUTH, UNRELATED, measure

from music_evals.audio.rendering import find_soundfont
from music_evals.datasets.known_edits import build as known_edits
from music_evals.metrics.catalogue import AUXILIARY
from music_evals.pipelines.preservation import FACETS
from music_evals.yaml_files import packaged_yaml

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RENDERERS = ("additive", "fluidsynth")
ENTRANCES = (TRUTH, *RENDERERS)
HALVES = ("tuning", "held_out")
GOAL = 0.95


def main() -> None:
    """Measure what is asked for and write the evidence."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--renderers", nargs="+", default=list(ENTRANCES), choices=ENTRANCES)
    parser.add_argument("--halves", nargs="+", default=list(HALVES), choices=HALVES)
    parser.add_argument("--pieces", type=int, help="only so many pieces of each half; prints, and writes nothing")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--work",
        type=Path,
        default=Path(tempfile.gettempdir()) / "preservation_validity",
        help="audio, features, records",
    )
    parser.add_argument("--write", action="store_true", help="only the cards of auxiliary metrics, from responses.csv")
    options = parser.parse_args()
    plan = packaged_yaml("music_evals.datasets.known_edits", "edits.yaml")
    if options.write:
        _write_auxiliary(pd.read_csv(HERE / "responses.csv"), plan)
        return
    if "fluidsynth" in options.renderers:
        find_soundfont()  # raises with the command that installs one, before hours are spent
    rows = _chosen_rows(options.halves, options.pieces)
    records = load_records([measure(rows, renderer, options.work, options.workers) for renderer in options.renderers])
    found = [
        item for half in options.halves for name in options.renderers for item in evidence(records, plan, half, name)
    ]
    print(_evidence_table(found))
    if options.pieces is None and tuple(options.renderers) == ENTRANCES and tuple(options.halves) == HALVES:
        _write_all(records, found, plan)


def _chosen_rows(halves: Sequence[str], n_pieces: int | None) -> list[dict[str, Any]]:
    rows = []
    for half in halves:
        loaded = known_edits.load_rows("default", half)
        pieces = list(dict.fromkeys(row["piece"] for row in loaded))[:n_pieces]
        rows += [row for row in loaded if row["piece"] in pieces]
    return rows


def _write_all(records: pd.DataFrame, found: Sequence[Evidence], plan: dict[str, Any]) -> None:
    from pictures import draw_leakage, draw_responses

    table = pd.DataFrame(
        [{**vars(item), "leakage": max(item.leakage.values(), default=float("nan"))} for item in found]
    )
    table.drop(columns="shift").to_csv(HERE / "evidence.csv", index=False, float_format="%.4f")
    answers = pd.concat(
        {(half, name): responses(records, half, name) for half in HALVES for name in ENTRANCES},
        names=["half", "renderer"],
    )
    answers.to_csv(HERE / "responses.csv", float_format="%.4f")
    for renderer in RENDERERS:
        shown = [item for item in found if item.half == "held_out" and item.renderer == renderer]
        draw_responses(answers.loc["held_out", renderer], plan, HERE / f"responses_{renderer}.svg")
        draw_leakage(shown, HERE / f"leakage_{renderer}.svg")
    held_out = [item for item in found if item.half == "held_out"]
    fill_in(HERE / "README.md", "evidence", _evidence_table(held_out))
    for metric in plan["responds_to"]:
        fill_in(card_of(metric), "validity", _card_table([item for item in held_out if item.metric == metric]))
    for facet, metrics in FACETS.items():
        fill_in(card_of(f"{facet}_preservation"), "validity", _evidence_table(_of(held_out, metrics)))
    fill_in(card_of("music_context_preservation"), "validity", _evidence_table(held_out))
    _write_auxiliary(answers.reset_index(), plan)


def _write_auxiliary(answers: pd.DataFrame, plan: Mapping[str, Any]) -> None:
    for name in filter(has_card, AUXILIARY):
        fill_in(card_of(name), "validity", _auxiliary_table(answers, name, plan["control"]))


def _auxiliary_table(answers: pd.DataFrame, name: str, control: Sequence[str]) -> str:
    """Return the means of an auxiliary metric: no rule in the table of edits tells its own changes from others."""
    if name not in answers:
        return "Not measured on `known_edits`: the score is younger than the last run on it.\n"
    lines = ["| input | unrelated pairs | same music |", "|---|---|---|"]
    for renderer in RENDERERS:
        rows = answers[(answers.half == "held_out") & (answers.renderer == renderer)]
        unrelated, same = rows[rows.kind == UNRELATED], rows[rows.kind.isin(control)]
        means = [float(np.average(part[name], weights=part.n)) for part in (unrelated, same)]
        lines.append(f"| audio, {renderer} | {means[0]:.2f} | {means[1]:.2f} |")
    lines += ["", "No AUC here: `edits.yaml` says what each of the eleven shall answer, no auxiliary metric."]
    return "\n".join(lines) + "\n"


def card_of(name: str) -> Path:
    """Return the card of a module."""
    return ROOT / "metrics" / name / "README.md"


def has_card(name: str) -> bool:
    """Tell whether a score has a module, and so a card."""
    return card_of(name).exists()


def _of(found: Sequence[Evidence], metrics: Sequence[str]) -> list[Evidence]:
    return [item for item in found if item.metric in metrics]


def fill_in(path: Path, marker: str, text: str) -> None:
    """Put the text between ``<!-- marker -->`` and ``<!-- /marker -->``."""
    page = path.read_text(encoding="utf-8")
    pattern = rf"(<!-- {marker} -->\n).*?(<!-- /{marker} -->)"
    assert re.search(pattern, page, re.DOTALL), f"{path} has no place for {marker}"
    path.write_text(re.sub(pattern, lambda found: found[1] + text + found[2], page, flags=re.DOTALL), encoding="utf-8")


def _evidence_table(found: Sequence[Evidence]) -> str:
    lines = [
        "| metric | half | renderer | AUC | 95 % interval | chance | ceiling | worst leakage | monotone | undefined |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for item in found:
        cells = [
            f"`{item.metric}`", item.half, item.renderer, _bold(item.auc), f"{item.low:.2f} to {item.high:.2f}",
            f"{item.chance:.2f}", f"{item.ceiling:.2f}", _worst_leak(item),
            f"{item.monotone:.2f}", str(item.n_undefined),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _bold(area: float) -> str:
    return f"**{area:.3f}**" if area >= GOAL else f"{area:.3f}"


def _worst_leak(item: Evidence) -> str:
    """Return the kind that leaks most, how much, and by how much its median score moves."""
    if not item.leakage:
        return ""
    kind = max(item.leakage, key=item.leakage.__getitem__)
    return f"{item.leakage[kind]:.2f} ({kind}, {item.shift[kind]:+.2f})"


def _card_table(found: Sequence[Evidence]) -> str:
    lines = [
        "| input | AUC | 95 % interval | unrelated pairs | same music | worst leakage |",
        "|---|---|---|---|---|---|",
    ]
    for item in found:
        name = "exact annotations" if item.renderer == TRUTH else f"audio, {item.renderer}"
        lines.append(
            f"| {name} | {item.auc:.3f} | {item.low:.2f} to {item.high:.2f} | {item.chance:.2f} "
            f"| {item.ceiling:.2f} | {_worst_leak(item)} |"
        )
    return "\n".join([*lines, "", *_verdict(found)]) + "\n"


def _verdict(found: Sequence[Evidence]) -> list[str]:
    areas = {item.renderer: item.auc for item in found}
    missed = [renderer for renderer in RENDERERS if not areas[renderer] >= GOAL]
    verdict = f"**missed** ({', '.join(missed)})" if missed else "reached"
    lines = [f"On audio the goal of {GOAL} is {verdict}."]
    if missed and areas[TRUTH] < GOAL:
        lines.append(f"No extractor could reach it: on exact annotations the metric itself gets to {areas[TRUTH]:.3f}.")
    return lines


if __name__ == "__main__":
    main()
