"""What an edit costs, by formula: how often the network of each system is called, and for what.

Usage: python -m benchmarks.editing.cost [--write]

Prints the calls of the published settings, and of the studies of MuseCPBench: what edits of one source have in common
is done once here. --write fills the section of README.md. Tests count the calls of tiny models.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.musib.tables import fill

from music_evals.annotations.edits import MOST_CONFIDENCE
from music_evals.benchmark.formats import markdown_rows
from music_evals.editing.refinpaint import kept_count
from music_evals.files import write_atomically
from music_evals.protocols import EDITORS, load_plugin

PAGE = Path(__file__).with_name("README.md")
FRAME_RATE, DELAY = 50, 3  # of EnCodec at 32 kHz, and of the pattern of its four codebooks

Parameters = Mapping[str, Any]


class Calls(NamedTuple):
    """Calls of a system's network."""

    source: int
    """Of what all edits of a source share."""
    edit: int
    """Of each edit besides."""

    def study(self, n_sources: int, n_edits: int) -> int:
        """Return the calls of a study in which sources are shared."""
        return self.source * n_sources + self.edit * n_edits


def musicgen(parameters: Parameters, seconds: float) -> Calls:  # noqa: ARG001 (guidance adds a row to a call, no call)
    """Of the decoder: a frame of the codec each, and the delay of its last codebook."""
    return Calls(0, round(FRAME_RATE * seconds) + DELAY)


def musicgen_by_text(parameters: Parameters, seconds: float) -> Calls:
    """As `musicgen`; the class of transformers without a melody draws one step more, which is cut off."""
    return Calls(0, musicgen(parameters, seconds).edit + 1)


def zeta(parameters: Parameters, seconds: float) -> Calls:  # noqa: ARG001 (the length is in the size of a latent)
    """Of the U-Net: with guidance two a step, for all steps of the inversion and the last ones of each edit."""
    return Calls(2 * parameters["steps"], 2 * parameters["start"])


def musicmagus(parameters: Parameters, seconds: float) -> Calls:  # noqa: ARG001 (as above)
    """Of the U-Net: one a step of the inversion; two a step and branch, and one for the pull, with its gradient."""
    inverted = 0 if parameters["noise_seed"] is not None else parameters["steps"]
    return Calls(inverted, parameters["steps"] * (5 if parameters["pull"] > 0 else 4))


def refinpaint(n_tokens: int, confidence: int) -> Calls:
    """Of the decoder: one for each token that is drawn in each of the rounds, of so many that may change."""
    return Calls(0, sum(n_tokens - kept_count(n_tokens, turn) for turn in range(MOST_CONFIDENCE - confidence, 0, -1)))


BY_SECONDS: Mapping[str, Callable[[Parameters, float], Calls]] = {
    "musicgen": musicgen_by_text,
    "musicgen_melody": musicgen,
    "musicongen": musicgen,
    "zeta": zeta,
    "musicmagus": musicmagus,
}
FORMULAS = {
    "musicgen": "50 s + 4",
    "musicgen_melody": "50 s + 3",
    "musicongen": "50 s + 3",
    "zeta": "2 steps a source, 2 start an edit",
    "musicmagus": "steps a source, 5 steps an edit",
    "refinpaint": "tokens drawn, over all rounds",
}
STUDIES = {  # MuseCPBench: sources and edits, seconds of a source (10 s are those of MusicCaps)
    "musicgen": (20, 20, 30.0),
    "musicgen_melody": (100, 100, 10.0),
    "musicongen": (100, 100, 10.0),
    "zeta": (107, 696, 30.0),
    "musicmagus": (60, 60, 10.24),
}
TOKENS, CONFIDENCE = 200, 5  # of the example for RefinPaint: four bars of a full texture


def published(system: str) -> dict[str, Any]:
    """Return the parameters that a system has where none are given: those of the authors' code."""
    signature = inspect.signature(load_plugin(EDITORS, system, "editing system"))
    return {name: one.default for name, one in signature.parameters.items()}


def table() -> str:
    """Return the calls as Markdown."""
    head = ["system", "calls", "10 s", "30 s", "sources", "edits", "calls of the study", "not shared"]
    lines = [head, ["---"] * len(head)]
    for system, formula in FORMULAS.items():
        if system == "refinpaint":
            calls = refinpaint(TOKENS, CONFIDENCE)
            example = f"{calls.edit:,} ({TOKENS} tokens, confidence {CONFIDENCE})"
            lines.append([f"`{system}`", formula, example, "", "6", "300", "", ""])
            continue
        n_sources, n_edits, seconds = STUDIES[system]
        ten, thirty, own = (BY_SECONDS[system](published(system), length) for length in (10.0, 30.0, seconds))
        lines.append([
            f"`{system}`", formula, *(f"{sum(calls):,}" for calls in (ten, thirty)), str(n_sources), str(n_edits),
            f"{own.study(n_sources, n_edits):,}", f"{own.study(n_edits, n_edits):,}",
        ])  # fmt: skip
    return markdown_rows(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, and perhaps write it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, default=PAGE, help="the page that --write fills")
    parser.add_argument("--write", action="store_true", help="fill the section of the page")
    options = parser.parse_args(arguments)
    print(table())
    if options.write:
        page = fill(options.page.read_text(encoding="utf-8"), {"cost": table()})
        write_atomically(options.page, page.encode())


if __name__ == "__main__":
    main()
