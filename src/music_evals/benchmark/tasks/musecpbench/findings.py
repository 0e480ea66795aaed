"""What MuseCPBench says of its systems, tested on the edits of a study.

Two systems are compared source by source, over those that both edited, each by the mean of its edits of a source. So
one that edits scores is compared with one that edits recordings of the same pieces, and one edit with three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.formats import markdown_name, markdown_rows
from music_evals.benchmark.score_table import ScoreTable
from music_evals.metrics.catalogue import PRESERVATION_METRICS
from music_evals.stats.multiplicity import ERROR_RATE, verdict
from music_evals.stats.paired import paired_mean_test

Part = tuple[str, str, str]  # who is claimed to be better, than whom, and at which metric


class Finding(NamedTuple):
    """What the paper says, and the differences that this claims."""

    key: str
    claim: str
    source: str
    measured: str
    parts: Sequence[Part]
    every: bool = True  # whether all parts must hold, or one of them


_AUDIO = ("musicgen_melody", "musicongen", "zeta")
_BY_ARI = ("refinpaint", "zeta", "musicgen", "musicgen_melody", "musicongen", "musicmagus")  # as printed, best first
_ONE_A_FACET = ("chroma_dtw_similarity", "beat_f_measure", "segment_ari", "motif_recall")

FINDINGS: Final = (
    Finding(
        "refinpaint_best_overall", "RefinPaint preserves most, over all facets.", "Section 4.1, table 2.",
        "RefinPaint against each other editor: chroma DTW, beat F, ARI, motif recall.",
        [*product(["refinpaint"], [*_AUDIO, "musicmagus"], _ONE_A_FACET)],
    ),
    Finding(
        "musicgen_weak_in_rhythm", "MusicGen, given a melody, is weak in rhythm.",
        "Section 4.1, table 2; there MusicMagus has a lower beat F still, and is not compared here.",
        "MusiConGen, ZETA and RefinPaint against it: delta BPM, beat F.",
        [*product(["musicongen", "zeta", "refinpaint"], ["musicgen_melody"], ["delta_bpm", "beat_f_measure"])],
    ),
    Finding(
        "musicmagus_harmony_without_beats", "MusicMagus preserves harmony and loses the beats.",
        "Section 4.2, table 2: beat F 0.030.",
        "It against the other editors of recordings: chroma DTW, major-minor; each other editor against it: beat F.",
        [
            *product(["musicmagus"], _AUDIO, ["chroma_dtw_similarity", "major_minor_score"]),
            *product([*_AUDIO, "refinpaint"], ["musicmagus"], ["beat_f_measure"]),
        ],
    ),
    Finding(
        "ari_separates_systems", "ARI tells systems apart.",
        "Section 4.2, table 2: it does where boundary F is 1.000 for all editors.",
        "Each two systems in the printed order: ARI; one pair is enough.",
        [(a, b, "segment_ari") for a, b in combinations(_BY_ARI, 2)], every=False,
    ),
)  # fmt: skip
"""In the order of the paper's section 4."""


def weigh_findings(score_table: ScoreTable) -> list[dict[str, Any]]:
    """Return what a run says to each finding, given its records.

    Each is a dictionary of the fields of `Finding`; ``verdict``: ``"supported"``, ``"contradicted"``, ``"undecided"``
    or ``"not testable"``; ``with``, who was compared, and ``without``: who was not, and why; ``parts``: ``a``, ``b``,
    ``metric``, ``difference`` (how much better a is), its interval and confidence, ``p_value``, and ``n`` sources. A
    claim over all systems is not supported by some of them.
    """
    import pandas as pd

    scores = {}  # of each system, the means of its edits of a source: sources in rows
    for system in score_table.systems:
        pairs = score_table.scored(system)
        table = pd.DataFrame(pairs.values(*score_table.header["metrics"]), columns=score_table.header["metrics"])
        scores[system] = table.groupby(np.asarray(pairs.codes("group"))).mean()
    rows = []
    for finding in FINDINGS:
        without: dict[str, str] = {}
        shared: dict[Part, Any] = {}
        for part in finding.parts:
            a, b, metric = part
            absent = [system for system in (a, b) if system not in scores]
            without |= dict.fromkeys(absent, "did not run")
            if absent:
                continue
            both = pd.concat([scores[a][metric], scores[b][metric]], axis=1, join="inner").dropna()
            if len(both):
                shared[part] = both.to_numpy()
            else:
                without.setdefault(b, f"no source in common with {a}")
        parts = [_difference(part, both, 1 - ERROR_RATE / len(shared)) for part, both in shared.items()]
        outcome = verdict([(part["low"], part["high"]) for part in parts], every=finding.every)
        if len(parts) < len(finding.parts) and outcome == ("supported" if finding.every else "contradicted"):
            outcome = "undecided"
        who = list(dict.fromkeys(system for a, b, _ in shared for system in (a, b)))
        about = {"verdict": outcome if parts else "not testable", "with": who, "without": without, "parts": parts}
        rows.append(finding._asdict() | about)
    return rows


def _difference(part: Part, both: npt.NDArray[np.float64], confidence: float) -> dict[str, Any]:
    """Return how much better a is than b, by their scores of shape (sources, 2)."""
    a, b, metric = part
    scale = PRESERVATION_METRICS[metric]
    first, second = both.T[::-1] if scale.direction == "lower" else both.T
    test = paired_mean_test(first, second, None, confidence=confidence, span=(scale.low, scale.high))
    values = {name: None if np.isnan(value) else value for name, value in test._asdict().items()}
    return {"a": a, "b": b, "metric": metric, **values, "confidence": confidence}


def findings_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the findings with their verdicts as a Markdown table."""
    lines = [["finding", "where", "what is compared", "verdict", "with", "without"], ["---"] * 6]
    for row in rows:
        without = "; ".join(f"{markdown_name(name)} ({why})" for name, why in row["without"].items())
        who = ", ".join(map(markdown_name, row["with"]))
        lines.append([row["claim"], row["source"], row["measured"], f"**{row['verdict']}**", who, without])
    return markdown_rows(lines)
