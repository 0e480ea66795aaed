"""The paper's findings on a run: what is compared piece by piece, and what cannot be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from music_evals.benchmark.published import published_preservation
from music_evals.benchmark.tasks.musecpbench.findings import FINDINGS, findings_table, weigh_findings
from music_evals.metrics.catalogue import PRESERVATION_METRICS

METRICS = list(PRESERVATION_METRICS)


class Pairs(SimpleNamespace):
    """The pairs of a system, as far as they are read: groups, and scores by name."""

    def values(self, *names: str) -> npt.NDArray[np.float64]:
        return np.column_stack([self.scores[name] for name in names])

    def codes(self, column: str) -> npt.NDArray[np.int64]:
        return np.asarray({"group": self.groups}[column])


def found(scores: dict[str, dict[str, float]], n: int = 12, **groups: list[int]) -> Any:
    """Systems whose scores scatter a little about what is given, twice on each of some pieces."""
    rng = np.random.default_rng(0)
    pairs = {}
    for system, means in scores.items():
        own = np.repeat(groups.get(system, list(range(n))), 2)
        values = {name: means[name] + rng.normal(0, 0.002, len(own)) for name in METRICS if name in means}
        pairs[system] = Pairs(groups=own, scores=values)
    header = {"metrics": METRICS, "companions": []}
    return SimpleNamespace(systems=tuple(pairs), scored=pairs.__getitem__, metrics=tuple(METRICS), header=header)


PRINTED = {
    system: published_preservation(METRICS)["table"][label]
    for label, system in {
        "Vanilla": "musicgen", "MusicGen": "musicgen_melody", "MusiConGen": "musicongen", "MusicMagus": "musicmagus",
        "ZETA": "zeta", "RefinPaint": "refinpaint",
    }.items()
}  # fmt: skip


def verdicts(held: Any) -> dict[str, str]:
    return {row["key"]: row["verdict"] for row in weigh_findings(held)}


def test_the_printed_table_supports_what_the_paper_finds() -> None:
    assert verdicts(found(PRINTED)) == {finding.key: "supported" for finding in FINDINGS}
    for finding in FINDINGS:  # each part is what the printed digits say
        for a, b, metric in finding.parts:
            sign = -1 if PRESERVATION_METRICS[metric].direction == "lower" else 1
            assert sign * (PRINTED[a][metric] - PRINTED[b][metric]) > 0, (finding.key, a, b, metric)


def test_the_other_way_round_it_is_contradicted() -> None:
    turned = dict(zip(PRINTED, reversed(PRINTED.values()), strict=True))
    assert verdicts(found(turned))["refinpaint_best_overall"] == "contradicted"
    assert verdicts(found(dict.fromkeys(PRINTED, PRINTED["zeta"])))["ari_separates_systems"] == "undecided"


def test_what_did_not_run_is_named_and_supports_nothing() -> None:
    some = {name: PRINTED[name] for name in ("refinpaint", "zeta")}
    rows = {row["key"]: row for row in weigh_findings(found(some))}
    best = rows["refinpaint_best_overall"]
    assert (best["verdict"], best["with"]) == ("undecided", ["refinpaint", "zeta"])
    assert best["without"] == dict.fromkeys(["musicgen_melody", "musicongen", "musicmagus"], "did not run")
    assert all(part["low"] > 0 for part in best["parts"])
    assert rows["musicgen_weak_in_rhythm"]["verdict"] == "not testable"
    assert rows["musicgen_weak_in_rhythm"]["without"].keys() == {"musicgen_melody", "musicongen"}
    assert rows["ari_separates_systems"]["verdict"] == "supported"  # one pair is enough


def test_systems_without_a_source_in_common_are_not_compared() -> None:
    some = {name: PRINTED[name] for name in ("refinpaint", "zeta")}
    row = weigh_findings(found(some, zeta=[20, 21, 22]))[0]
    assert row["verdict"] == "not testable"
    assert row["without"]["zeta"] == "no source in common with refinpaint"


def test_pieces_count_alike_and_intervals_hold_together() -> None:
    """Worked by hand: a piece with two edits is one value, the mean of both; 16 parts share the error rate."""
    held = found(PRINTED, n=3)
    held.scored("musicmagus").groups = np.array([0, 0, 0, 0, 1, 2])
    part = weigh_findings(held)[0]["parts"][-1]
    a, b = (held.scored(part[side]) for side in "ab")
    means = [np.mean(b.values("motif_recall")[b.groups == group]) for group in range(3)]
    expected = np.mean([np.mean(a.values("motif_recall")[a.groups == g]) - means[g] for g in range(3)])
    assert (part["b"], part["metric"], part["n"]) == ("musicmagus", "motif_recall", 3)
    assert part["difference"] == pytest.approx(expected)
    assert part["confidence"] == pytest.approx(1 - 0.05 / 16)


def test_the_table_says_with_whom() -> None:
    some = {name: PRINTED[name] for name in ("refinpaint", "zeta")}
    table = findings_table(weigh_findings(found(some)))
    assert "**undecided**" in table
    assert "`refinpaint`, `zeta`" in table
    assert "`musicongen` (did not run)" in table
