"""Published tables, and why our numbers differ from them. Nothing here was run by us.

Score inpainting: Araneda-Hernandez et al., "MUSIB: musical score inpainting benchmark", tables 2 (IrishFolkSong),
3 (JSB Chorales) and 4 (171 songs of the former), with the values of the literature that table 2 marks with an asterisk;
the second VLI rows are from tables 3.2 and 3.3 of the thesis (Araneda, Universidad de Chile, 2023), which agree with
tables 2 and 3 in all others.
Music context preservation: Vishe et al., "MuseCPBench", table 2.
Structured lyrics and music description: Wang et al., "MuChin", IJCAI 2024, tables 1 and 2.
The editing test: Lu et al., "Actions speak louder than listening", ACM MM 2021, tables 2 to 4.
The numbers are files of ``published/``.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from typing import Any, NamedTuple

from music_evals.csv_files import csv_rows

COMMENT = "# "


class PublishedTable(NamedTuple):
    """A table of a paper."""

    source: str  # where it is printed
    means: dict[str, dict[str, float]]  # system -> score -> value, all digits as printed
    spread: dict[str, dict[str, float]]  # system -> score -> standard deviation, where one is printed
    marks: dict[str, dict[str, str]]  # system -> score -> ``"best"``, ``"second"`` or stars, where it is printed so


def read_published(name: str) -> PublishedTable:
    """Read a table out of ``published/<name>.csv``."""
    # Lines that start with ``#`` say where it is from; then come the columns ``system``, ``score``, ``mean``, ``sd``
    # and perhaps ``mark``, the last ones empty where none is printed.
    text = resources.files("music_evals.benchmark").joinpath("published", f"{name}.csv").read_text(encoding="utf-8")
    lines = text.splitlines()
    comments = dict(line.removeprefix(COMMENT).split(": ", 1) for line in lines if line.startswith(COMMENT))
    means: dict[str, dict[str, float]] = {}
    spread: dict[str, dict[str, float]] = {}
    marks: dict[str, dict[str, str]] = {}
    for row in csv_rows("\n".join(line for line in lines if not line.startswith(COMMENT)), name):
        means.setdefault(row["system"], {})[row["score"]] = float(row["mean"])
        if row["sd"]:
            spread.setdefault(row["system"], {})[row["score"]] = float(row["sd"])
        if row.get("mark"):
            marks.setdefault(row["system"], {})[row["score"]] = row["mark"]
    return PublishedTable(comments["source"], means, spread, marks)


_MUSIB = read_published("musib_table3")

JSB_TABLE = _MUSIB.means
"""System -> metric -> value, all digits as printed."""

OFFICIAL_DIFFERENCES: dict[str, str] = {
    "leaks": (
        "The published Anticipation-RNN is teacher-forced: each step is given the true token before it. InpaintNet is "
        "fed true latents for half of its items, VLI is given the true first onset. Ours leaks only when the decoding "
        "teacher_forced is asked for, and is then labelled."
    ),
    "transposition": (
        "The published code transposes every test item at random, -6 to 6 semitones, without a seed: no second run of "
        "it would meet the same test set. Ours is never transposed."
    ),
    "contexts": (
        "18 contexts, the first 16 measures of each soprano. With so few, the published divergences are mostly noise: "
        "compare them with the noise floor beside ours."
    ),
    "histogram": (
        "Under variant=official 99 bins end at 0.99, larger values are dropped and the mass need not be 1, as in the "
        "published code. Divergences are in nats, at most 0.693."
    ),
    "silence": (
        "The published InpaintNet and SketchNet write a C4 into every empty measure, of the reference too. All our "
        "systems are scored against the untouched reference."
    ),
    "nll": (
        "The published NLL is the validation loss of each model in its own vocabulary, 131 classes for "
        "Anticipation-RNN. Ours is over the 130 tokens, on the test contexts. It is not comparable between models."
    ),
    "weights": (
        "No published weights exist. Ours are trained as their card says; the published training drew "
        "one random voice and window for each song."
    ),
    "corpus": (
        "The published MIDI files came from music21 5.7, lose the last step of the last note and, in 6 of 171 songs, "
        "drift through a truncated tempo. Ours come from the current corpus on a grid of symbolic time."
    ),
}
"""What differs -> why, in the order of its weight."""


def published_section() -> dict[str, Any]:
    """Return the published table with its source and the differences, as the results file holds it."""
    return {"source": _MUSIB.source, "table": JSB_TABLE, "differences": OFFICIAL_DIFFERENCES}


_MUSECPBENCH = read_published("musecpbench_table2")

PRESERVATION_DIFFERENCES: dict[str, str] = {
    "systems": (
        "The rows differ in sources, number of items, lengths and tools, and are given without spread or test: they "
        "are a band of what is plausible, and not comparable with each other nor with other music."
    ),
    "structure": (
        "A boundary F-measure of 1.000 for every editor is what the authors' code gives any two files of one length "
        "when its segmenter is missing and both are cut into equal pieces. That is probably how the column came about; "
        "the authors have not said so."
    ),
    "melody": (
        "The authors' default pitch tracker follows single voices. In a mixture it follows whatever sounds, so their "
        "melody columns describe that; their motifs are made of frames and not of notes."
    ),
    "chance": (
        "The published chroma DTW compares frames as they are, where noise scores like music; ours compares what "
        "stands out of their mean. Some scores of unrelated music are far from 0, and some of the same music far from "
        "1: read every score between the two control rows of this run, not between 0 and 1."
    ),
}
"""What differs -> why."""


def published_preservation(metrics: Iterable[str]) -> dict[str, Any]:
    """Return the published table of music context preservation, the columns of some metrics, with its source.

    ``marks``: system -> metric -> ``"best"`` or ``"second"``, where the paper prints a value bold or underlined.
    """
    return _section(_MUSECPBENCH, metrics, PRESERVATION_DIFFERENCES) | {"marks": _MUSECPBENCH.marks}


LYRIC_DIFFERENCES: dict[str, str] = {
    "misprint": (
        "The six parts of Qwen 14B base add up to 50.06 and not to its printed total of 48.31; the other columns agree "
        "within 0.02. One of its seven numbers is a misprint, and which is not known. With 50.06 the order of Qwen 14B "
        "base and Baichuan-2 53B (49.19) would turn round."
    ),
    "variant": (
        "The published scores were made by the authors' code, variant=official, and not by the equations of the paper: "
        "these would not let GPT-4 have 32.40 section points with 2.50 of 10 song points."
    ),
    "songs": (
        "Which songs were given to the language models, how they were decoded and how the fine-tuned one was trained "
        "is not published. The values are means and standard deviations over songs, without a test; this run has its "
        "own songs."
    ),
    "prompt": (
        "The authors' prompt is one of their own in Chinese; other words of a prompt give other lyrics. What a model "
        "writes around its lyrics is removed here before it is scored, unless the run says otherwise."
    ),
    "ceiling": (
        "110 is not within reach even for the true lyrics, and the lyrics of another song are far from 0: read a score "
        "between the control rows of this run."
    ),
    "corrected": "The corrected total is ours; the paper has no such column.",
}
"""What differs -> why."""

DESCRIPTION_DIFFERENCES: dict[str, str] = {
    "rows": (
        "The row labels of table 2 look permuted, so that only its averages are shown here. The row with about 0.93 "
        "is the seventh in both halves; the seventh group in the order of the released code is audio quality, where "
        "nearly all songs carry the same tag. It is printed as expressive impact, whose tags hardly ever agree. This "
        "is a strong inference from the released data; the authors have not confirmed it."
    ),
    "tags": (
        "The published encoders were judged on tags that had been replaced by the names of clusters, whose "
        "dictionaries are not released. Raw tags give other numbers."
    ),
    "threshold": (
        "A tag was given where its probability passed a threshold, and otherwise the likeliest one; which of the five "
        "thresholds of the code made the table is not stated."
    ),
    "encoder": (
        "The published similarities are those of BAAI/bge-large-zh-v1.5 in half precision, the mean over all pairs of "
        "tags. Those of another text encoder or aggregation are not comparable."
    ),
    "ceiling": (
        "The mean over all pairs of tags is below 1 even for a description against itself: read a score between the "
        "control rows of this run."
    ),
}
"""What differs -> why."""


def published_lyrics(metrics: Iterable[str]) -> dict[str, Any]:
    """Return table 1 of MuChin, structured lyrics by language models, with its source and its known misprint."""
    return _section(read_published("muchin_table1"), metrics, LYRIC_DIFFERENCES)


def published_descriptions(metrics: Iterable[str]) -> dict[str, Any]:
    """Return the averages of table 2 of MuChin, tags by audio encoders, with its source."""
    # Its other rows are in the data file and not compared: their labels look permuted.
    averages = [name for name in metrics if name.endswith("_average")]
    return _section(read_published("muchin_table2"), averages, DESCRIPTION_DIFFERENCES)


def _section(table: PublishedTable, metrics: Iterable[str], differences: dict[str, str]) -> dict[str, Any]:
    names = list(metrics)
    means, spread = (
        {system: {name: row[name] for name in names if name in row} for system, row in side.items()}
        for side in (table.means, table.spread)
    )
    return {"source": table.source, "table": means, "spread": spread, "differences": differences}
