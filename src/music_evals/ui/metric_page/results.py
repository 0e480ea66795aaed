"""What a metric's page says of a result: bars, notes, receipt, code that gives the same, and files to take away."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from music_evals.errors import InvalidInputError, NoDataError
from music_evals.metrics.catalogue import AUXILIARY
from music_evals.ui.assets import html
from music_evals.ui.frame import receipt_html, write_downloads
from music_evals.ui.widgets.bars import Bar, bar_of, bars_html, number, why_no_chance
from music_evals.yaml_files import load_yaml


@dataclasses.dataclass(frozen=True)
class PageMetric:
    """A metric as a page shows it."""

    name: str  # of the module, e.g. ``"note_f1"``
    module: Any  # class of the evaluate module
    card: dict[str, Any]  # YAML of the card
    text: str  # the card below the YAML

    def section(self, heading: str) -> str:
        """Return a section of the card without its heading; empty where the card has no such section."""
        match = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", self.text, flags=re.DOTALL | re.MULTILINE)
        return match[1].strip() if match else ""

    @property
    def kind(self) -> str:
        """What its module scores, see `hf.module.Module.kind`."""
        return str(self.module.kind)


def load_metric(name: str, app_file: str | os.PathLike[str]) -> PageMetric:
    """Load script and card that lie beside an `app.py`."""
    import evaluate

    folder = Path(app_file).resolve().parent
    card, text = load_card(folder)
    return PageMetric(name, type(evaluate.load(str(folder / f"{name}.py"))), card, text)


def load_card(folder: str | os.PathLike[str]) -> tuple[dict[str, Any], str]:
    """Return the YAML and the text of a card, `README.md` in a metric's folder."""
    path = Path(folder) / "README.md"
    if not path.is_file():
        raise NoDataError(f"{path}: no such card; a metric's folder holds its README.md beside app.py")
    match = re.match(r"---\n(.*?)\n---\n(.*)", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    if match is None:
        raise InvalidInputError(f"{path}: expected YAML between two lines of ---, then the text")
    return load_yaml(match[1], path), match[2].strip()


@dataclasses.dataclass(frozen=True)
class ScoredItem:
    """The scores of one item."""

    result: Mapping[str, Any]  # what `compute` gave
    settings: Mapping[str, Any]  # options that were set
    inputs: Mapping[str, str]  # what was scored, name -> SHA-256
    python: str  # code that gives the same result; `shell` is empty where no command of ours takes such an input
    shell: str = ""
    notes: Sequence[str] = ()  # what was warned of, in words
    lines: Sequence[str] = ()  # what is reported line by line, such as where points were lost
    modality: str = ""  # ``"audio"`` or ``"symbolic"`` for a pair of music; empty for anything else
    # The extractors of the recordings: feature -> backend and version.
    extractors: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def scores(self) -> dict[str, float]:
        """Scores by name, NaN where undefined."""
        names = [key.removesuffix("_n_defined") for key in self.result if key.endswith("_n_defined")]
        return {name: float(self.result[name]) for name in names}

    @property
    def bars(self) -> list[Bar]:
        """Scores with their ranges and markers."""
        known = {"modality": self.modality, "variant": str(self.settings.get("variant", ""))}
        return [bar_of(name, value, **known) for name, value in self.scores.items()]


class Shown(NamedTuple):
    """What the page shows, in the order of its outputs."""

    bars: str  # HTML
    results: dict[str, Any]  # plain values, undefined ones None
    receipt: str  # HTML
    python: str
    shell: str
    json_file: str
    csv_file: str


def show(metric: PageMetric, scored: ScoredItem) -> Shown:
    """Return what the page shows of a result; the files go as `frame.REMOVAL` says."""
    from music_evals import __version__

    receipt = {
        "metric": metric.name,
        "settings": dict(scored.settings),
        "inputs, SHA-256": dict(scored.inputs),
        **({"extractors": dict(scored.extractors)} if scored.extractors else {}),
        "music_evals": __version__,
    }
    results = {
        "metric": metric.name,
        "scores": {name: None if math.isnan(value) else value for name, value in scored.scores.items()},
        "notes": list(scored.notes),
        "receipt": receipt,
    }
    files = write_downloads(results, [bar.row for bar in scored.bars], name=metric.name)
    auxiliary = [bar for bar in scored.bars if bar.score in AUXILIARY]
    return Shown(
        html(
            "metric_result.html",
            bars=bars_html([bar for bar in scored.bars if bar not in auxiliary], headings=False),
            companions=bars_html(auxiliary, headings=False) if auxiliary else "",
            remarks=list(_remarks(scored)),
            notes=scored.notes,
            lines=scored.lines,
        ),
        results,
        receipt_html(receipt),
        scored.python,
        scored.shell,
        *files,
    )


def _remarks(scored: ScoredItem) -> Iterator[str]:
    """Yield the noise floors, what is undefined without a note that says why, and why a marker is missing."""
    for name, value in scored.scores.items():
        if f"{name}_null" in scored.result:
            yield f"noise floor of {name}: {number(scored.result[f'{name}_null'])}"
        if math.isnan(value) and not any(name in note for note in scored.notes):
            yield f"{name} is undefined for this pair"
    if scored.modality and (why := why_no_chance(scored.modality, str(scored.settings.get("variant", "")))):
        yield why


def content_hash(content: bytes | str) -> str:
    """Return the SHA-256 of what was scored, for the receipt."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def python_code(
    name: str, inputs: Mapping[str, str], settings: Mapping[str, Any], *, imports: Sequence[str] = ()
) -> str:
    """Return Python that computes a metric; it runs in the root of a clone of this repository."""
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
