"""Model cards filled from results: metadata that the Hub reads, and tables that people do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from music_evals.benchmark.cells import format_value
from music_evals.benchmark.inpainting.results import HEADINGS, SUBSETS
from music_evals.benchmark.tables import MARKDOWN, columns, legend, markdown_table, verdict
from music_evals.errors import InvalidInputError, UnknownNameError, UnreadableFileError
from music_evals.hub.scores import DECIMALS, TASKS

__all__ = ["RESULTS_END", "RESULTS_START", "fill_card"]

RESULTS_START = "<!-- results:start -->"
RESULTS_END = "<!-- results:end -->"

TASK = TASKS["inpainting"]

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
    """Return a model card with the scores of one system.

    Parameters
    ----------
    results
        From `benchmark.results.build_results`.
    system
        Name of the model in the results.
    card
        The card as it is, Markdown with a YAML head; None starts a new one. What stands between `RESULTS_START` and
        `RESULTS_END` is replaced; without these marks a section is added at the end. Scores that the head holds for
        other datasets or variants are kept.

    Returns
    -------
    str
        The whole card: ``model-index`` in its head, tables of the model and the baselines in its text.

    Raises
    ------
    UnknownNameError
        The results hold no such system.
    InvalidInputError
        The system has seen the reference: its scores belong on no card.
    UnreadableFileError
        The card's head is not YAML, or one mark stands without the other.

    """
    held = results["systems"].get(system)
    if held is None:
        kind = "system"
        raise UnknownNameError(kind, system, results["systems"])
    if held["role"] in {"control", "leaking"}:
        msg = f"{system} has seen the reference; its scores belong on no card"
        raise InvalidInputError(msg)
    text = card if card is not None else _BLANK.format(name=system, start=RESULTS_START, end=RESULTS_END)
    return _fill_head(_fill_text(text, _section(results, system)), results, system)


def _fill_text(card: str, section: str) -> str:
    has_start, has_end = RESULTS_START in card, RESULTS_END in card
    if not has_start and not has_end:
        return f"{card.rstrip()}\n\n## Results\n\n{RESULTS_START}\n{section}\n{RESULTS_END}\n"
    before, _, rest = card.partition(RESULTS_START)
    _, _, after = rest.partition(RESULTS_END)
    if not (has_start and has_end and RESULTS_END in rest):
        msg = f"the card needs {RESULTS_START} and, below it, {RESULTS_END}; one is missing or they are swapped"
        raise UnreadableFileError(msg)
    return f"{before}{RESULTS_START}\n{section}\n{RESULTS_END}{after}"


def _fill_head(card: str, results: Mapping[str, Any], system: str) -> str:
    import yaml
    from huggingface_hub import ModelCard

    try:
        filled = ModelCard(card)
        data: Any = filled.data  # the base class' hint knows nothing of a model's fields
    except (ValueError, yaml.YAMLError) as error:
        msg = f"the head of the card cannot be read: {error}; it must be YAML between two lines of ---"
        raise UnreadableFileError(msg) from error
    new = _eval_results(results, system)
    places = {_place(result) for result in new}
    kept = [result for result in data.eval_results or [] if _place(result) not in places]
    data.model_name = data.model_name or system
    data.eval_results = [*kept, *new]
    return str(filled)


def _place(result: Any) -> tuple[Any, ...]:
    """Return what tells apart the scores that may stand in one card."""
    variant = (result.metric_args or {}).get("variant")
    return result.dataset_type, result.dataset_config, result.dataset_split, variant


def _eval_results(results: Mapping[str, Any], system: str) -> list[Any]:
    from huggingface_hub import EvalResult

    dataset, intervals = results["dataset"], results["intervals"]
    table = results["tables"]["all"]
    cells = {metric: table["scores"][system][metric] for metric in columns(table) if metric in table["scores"][system]}
    return [
        EvalResult(
            task_type=TASK.type,
            task_name=TASK.name,
            dataset_type=dataset["id"],
            dataset_name=dataset["id"].replace("_", " "),
            dataset_config=dataset["config"],
            dataset_split=dataset["split"],
            dataset_revision=dataset["revision"],
            metric_type=metric,
            metric_name=HEADINGS[metric],
            metric_value=round(cell["value"], DECIMALS),
            metric_args={"variant": results["variant"], "confidence": intervals["confidence"], **_bounds(cell)},
        )
        for metric, cell in cells.items()
        if isinstance(cell["value"], float)
    ]


def _bounds(cell: Mapping[str, Any]) -> dict[str, float]:
    return {key: round(cell[key], DECIMALS) for key in ("low", "high", "null") if isinstance(cell.get(key), float)}


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
        f"`{test['against']}`: difference {format_value(test['difference'])}, corrected p = "
        f"{format_value(test['p_holm'])}, over {test['n']} windows."
    )
