"""What a metric's page says of a result: bars, notes, receipt, code that gives the same, and files to take away."""

from __future__ import annotations

import dataclasses
import hashlib
import html
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from music_evals.metrics.catalogue import COMPANIONS
from music_evals.ui.frame import code_html, receipt_html, write_downloads
from music_evals.ui.metric_page.card import PageMetric, meaning_of
from music_evals.ui.widgets.bars import number, range_bar
from music_evals.ui.widgets.score_bars import why_no_chance

__all__ = ["Judged", "Shown", "content_hash", "python_code", "shell_code", "show"]


@dataclasses.dataclass(frozen=True)
class Judged:
    """One item, judged.

    Parameters
    ----------
    result
        What `compute` gave.
    settings
        Options that were set.
    inputs
        What was judged, name -> SHA-256.
    python, shell
        Code that gives the same result; `shell` is empty where no command of ours takes such an input.
    notes
        What was warned of, in words.
    lines
        What is told line by line, such as where points were lost.
    entrance
        ``"audio"`` or ``"symbolic"`` for a pair of music; empty for anything else.
    extractors
        What heard the recordings: feature -> backend and version.

    """

    result: Mapping[str, Any]
    settings: Mapping[str, Any]
    inputs: Mapping[str, str]
    python: str
    shell: str = ""
    notes: Sequence[str] = ()
    lines: Sequence[str] = ()
    entrance: str = ""
    extractors: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def scores(self) -> dict[str, float]:
        """Scores by name, NaN where undefined."""
        names = [key.removesuffix("_n_defined") for key in self.result if key.endswith("_n_defined")]
        return {name: float(self.result[name]) for name in names}


class Shown(NamedTuple):
    """What the page shows, in the order of its outputs."""

    bars: str
    """HTML."""
    results: dict[str, Any]
    """Plain values, undefined ones None."""
    receipt: str
    """HTML."""
    python: str
    shell: str
    json_file: str
    csv_file: str


def show(metric: PageMetric, judged: Judged) -> Shown:
    """Return what the page shows of a result; the files go as `frame.REMOVAL` says."""
    receipt = _receipt(metric, judged)
    results = {
        "metric": metric.name,
        "scores": {name: None if math.isnan(value) else value for name, value in judged.scores.items()},
        "notes": list(judged.notes),
        "receipt": receipt,
    }
    files = write_downloads(results, list(_rows(judged)), name=metric.name)
    return Shown(_bars(judged), results, receipt_html(receipt), judged.python, judged.shell, *files)


def _bars(judged: Judged) -> str:
    known = {"entrance": judged.entrance, "variant": str(judged.settings.get("variant", ""))}
    bars = {name: range_bar(name, value, *meaning_of(name, **known)) for name, value in judged.scores.items()}
    beside = "".join(bars.pop(name) for name in list(bars) if name in COMPANIONS)
    parts = list(bars.values())
    if beside:
        parts.append(f"<details><summary>Companions, beside the score</summary>{beside}</details>")
    parts += [f"<p>{html.escape(line)}</p>" for line in _remarks(judged)]
    if judged.notes:
        parts.append("<ul>" + "".join(f"<li>{html.escape(note)}</li>" for note in judged.notes) + "</ul>")
    if judged.lines:
        parts.append("<h3>Where points were lost</h3>" + code_html("\n".join(judged.lines)))
    return "".join(parts)


def _remarks(judged: Judged) -> Iterator[str]:
    """Yield the noise floors, what is undefined without a note that says why, and why a marker is missing."""
    for name, value in judged.scores.items():
        if f"{name}_null" in judged.result:
            yield f"noise floor of {name}: {number(judged.result[f'{name}_null'])}"
        if math.isnan(value) and not any(name in note for note in judged.notes):
            yield f"{name} is undefined for this pair"
    if judged.entrance and (why := why_no_chance(judged.entrance, str(judged.settings.get("variant", "")))):
        yield why


def _rows(judged: Judged) -> Iterator[dict[str, Any]]:
    for name, value in judged.scores.items():
        span, _ = meaning_of(name)
        yield {"score": name, "value": value, "low": span.low, "high": span.high, "direction": span.direction}


def _receipt(metric: PageMetric, judged: Judged) -> dict[str, Any]:
    from music_evals import __version__

    return {
        "metric": metric.name,
        "settings": dict(judged.settings),
        "inputs, SHA-256": dict(judged.inputs),
        **({"extractors": dict(judged.extractors)} if judged.extractors else {}),
        "music_evals": __version__,
    }


def content_hash(content: bytes | str) -> str:
    """Return the SHA-256 of what was judged, for the receipt."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def python_code(
    name: str, inputs: Mapping[str, str], settings: Mapping[str, Any], *, imports: Sequence[str] = ()
) -> str:
    """Return Python that computes a metric; it runs in the root of a clone of this repository.

    Parameters
    ----------
    name
        Of the metric.
    inputs
        Argument of `compute` -> expression.
    settings
        Option of `compute` -> value.
    imports
        Lines that the expressions need.

    """
    arguments = {**inputs, **{option: repr(value) for option, value in settings.items()}}
    lines = [
        *("import evaluate", *imports),
        "",
        f'metric = evaluate.load("./metrics/{name}")  # or the name of its Space: evaluate.load("ORG/{name}")',
        "result = metric.compute(",
        *(f"    {argument}={expression}," for argument, expression in arguments.items()),
        ")",
        "print(result)",
    ]
    return "\n".join(lines)


def shell_code(*words: str) -> str:
    """Return a command, its words quoted for a shell."""
    return shlex.join(words)
