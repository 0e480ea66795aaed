"""Model cards filled from results: metadata that the Hub reads, and tables that people do."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from music_evals.benchmark.contents import verdict
from music_evals.benchmark.formats import format_difference, format_value
from music_evals.benchmark.tables import MARKDOWN, legend, markdown_table
from music_evals.benchmark.tasks.inpainting.task import HEADINGS, SUBSETS
from music_evals.errors import InvalidInputError, UnknownNameError, UnreadableFileError
from music_evals.hub.model_index import find_key, merge_index, read_index, write_index
from music_evals.hub.scores import index_entry, read_scores

__all__ = ["RESULTS_END", "RESULTS_START", "fill_card"]

RESULTS_START = "<!-- results:start -->"
RESULTS_END = "<!-- results:end -->"

_BLANK = """---
library_name: music_evals
tags: [music, symbolic-music, inpainting]
---

# {name}

## Results

{start}
{end}
"""


def fill_card(results: Mapping[str, Any], system: str, card: str | None = None) -> str:
    """Return a model card with the scores of one system."""
    held = results["systems"].get(system)
    if held is None:
        raise UnknownNameError("system", system, results["systems"])
    if held["role"] in {"control", "leaking"}:
        raise InvalidInputError(f"{system} has seen the reference; its scores belong on no card")
    text = card if card is not None else _BLANK.format(name=system, start=RESULTS_START, end=RESULTS_END)
    filled = _fill_text(text, _section(results, system))
    scores = read_scores(results, system)
    here = (scores.dataset.id, scores.dataset.config, scores.dataset.split, scores.variant)
    index = copy.deepcopy(read_index(filled))
    for model in index:
        for result in model["results"]:
            metrics = result["metrics"]
            for number in reversed(range(len(metrics))):
                # a value that is of this run, which does not have it any more
                key = find_key(result, metrics[number])
                if (key.dataset, key.config, key.split, key.variant) == here and key.metric not in scores.scores:
                    del metrics[number]
        model["results"][:] = [result for result in model["results"] if result["metrics"]]
    if scores.scores:
        index, _ = merge_index(index, index_entry(scores, system), system)
    return write_index(filled, index)


def _fill_text(card: str, section: str) -> str:
    has_start, has_end = RESULTS_START in card, RESULTS_END in card
    if not has_start and not has_end:
        return f"{card.rstrip()}\n\n## Results\n\n{RESULTS_START}\n{section}\n{RESULTS_END}\n"
    before, _, rest = card.partition(RESULTS_START)
    _, _, after = rest.partition(RESULTS_END)
    if not (has_start and has_end and RESULTS_END in rest):
        raise UnreadableFileError(
            f"the card needs {RESULTS_START} and, below it, {RESULTS_END}; one is missing or they are swapped"
        )
    return f"{before}{RESULTS_START}\n{section}\n{RESULTS_END}{after}"


def _section(results: Mapping[str, Any], system: str) -> str:
    """Return the text between the marks."""
    dataset = results["dataset"]
    place = ", ".join(f"{key} `{dataset[key]}`" for key in ("id", "config", "split") if dataset[key])
    shown = [name for name, held in results["systems"].items() if held["role"] == "baseline"]
    receipt = (
        f"Dataset {place} (content `{dataset['fingerprint']}`), metric variant `{results['variant']}`, seeds "
        f"{', '.join(map(str, results['seeds']))}. Content hash of the model: "
        f"`{results['systems'][system]['content_hash']}`. In brackets {100 * results['intervals']['confidence']:g} % "
        f"intervals, clustered by song, and the noise floor of a divergence."
    )
    parts = [receipt, _verdict(results, system)]
    for subset, table in results["tables"].items():
        title = SUBSETS[subset]
        heading = f"**{title[0].upper()}{title[1:]}** ({table['n_items']} items, {table['n_songs']} songs)"
        parts += [heading, markdown_table(results, subset, [system, *shown])]
    parts.append(legend(results, MARKDOWN))
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    parts.append(f"Made with {versions}.")
    return "\n\n".join(part for part in parts if part)


def _verdict(results: Mapping[str, Any], system: str) -> str:
    """Say plainly whether the model is better than the best baseline, by the metric that ranks."""
    metric = results["ranked_by"]
    cell = results["tables"]["all"]["scores"][system][metric]
    test = cell.get("test")
    if not test or test["difference"] is None:
        return ""
    return (
        f"By {HEADINGS[metric]}, which ranks, the model is {verdict(results, system, metric)} the best baseline "
        f"`{test['against']}`: difference {format_difference(test)}, corrected p = "
        f"{format_value(test['p_holm'])}, over {test['n']} windows."
    )
