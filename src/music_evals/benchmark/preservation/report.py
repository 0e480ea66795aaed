"""The report of a preservation run: the shared page, radars of the systems and timelines of the worst pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from music_evals.benchmark import canvas
from music_evals.benchmark.cells import format_value
from music_evals.benchmark.preservation.plots import PICTURE_STYLE, RIM, outward, radar, timeline
from music_evals.benchmark.report import Ranked, score_page, shares
from music_evals.benchmark.results import Found
from music_evals.benchmark.templates import render
from music_evals.metrics.catalogue import features_of

__all__ = ["SHOWN_PAIRS", "render_report", "worst_pairs"]

SHOWN_PAIRS = 10
"""Pairs with timelines by default: the worst of each system, to equal shares."""

LANES = {"beats": "beats", "chords": "chords", "segments": "sections", "melody": "melody"}
"""Feature that is drawn -> its word."""

LEAST_AXES = 3  # two axes make no radar

_PACKAGE = "music_evals.benchmark.preservation"


def render_report(results: Mapping[str, Any], found: Found, *, timelines: int = SHOWN_PAIRS) -> str:
    """Return the page."""
    canvas.check_backend()
    facts = {"variant": results["variant"], "policy": results["extractors"].get("policy", "none")}
    drawn = _timelines(results, found, timelines)
    return score_page(results, found, facts, pictures=[_radars(results)], items=[drawn], style=PICTURE_STYLE)


def _radars(results: Mapping[str, Any]) -> str:
    names = [name for name in results["metrics"] if results["scales"][name]["direction"] != "zero"]
    if len(names) < LEAST_AXES:
        return ""
    scores, scales = results["scores"], results["scales"]
    controls = {name: scores[name] for name, about in results["systems"].items() if about["role"] == "control"}
    radars = [
        (system, radar(f"radar-{place}", system, {name: scores[system][name] for name in names}, controls, scales))
        for place, (system, about) in enumerate(results["systems"].items())
        if about["role"] == "system"
    ]
    centre = "; ".join(f"{scales[name]['title']}: {bound:g}" for name, bound in RIM.items() if name in names)
    return render(_PACKAGE, "radars.html", radars=radars, centre=centre)


def worst_pairs(results: Mapping[str, Any], found: Found) -> list[Ranked]:
    """Return the pairs of each system that can be drawn, with the means of their places on the radar, worst first."""
    names = [name for name in results["metrics"] if results["scales"][name]["direction"] != "zero"]
    ranked: list[Ranked] = []
    for system in found.judged if names else ():
        pairs = found.readable(system)
        columns = zip(names, pairs.values(*names).T, strict=True)
        places = np.array([outward(name, column, results["scales"][name]) for name, column in columns])
        n_defined = np.count_nonzero(~np.isnan(places), axis=0)
        drawn = np.flatnonzero((n_defined > 0) & found.outlines.of_both(pairs))
        means = np.nansum(places[:, drawn], axis=0) / n_defined[drawn]
        order = np.argsort(means, kind="stable")  # by item where they are equal
        ranked.append((pairs.take(drawn[order]), means[order]))
    return ranked


def _timelines(results: Mapping[str, Any], found: Found, n: int) -> str:
    pairs = worst_pairs(results, found)
    drawn = []
    for pair, mean in shares(pairs, n):
        item, system = pair["item"], pair["system"]
        label = f"{item}, {system}"
        sides = [found.outlines[pair[side]["content"]] for side in ("reference", "estimate")]
        values = {name: format_value(found.value(item, system, name)) for name in results["metrics"]}
        scores = ", ".join(f"{results['scales'][name]['title']} {value}" for name, value in values.items())
        picture = timeline(*sides, label=f"Timeline of {label}")
        drawn.append({"label": label, "mean": mean, "scores": scores, "picture": picture})
    if not drawn:
        return ""
    n_pairs = sum(len(chosen) for chosen, _ in pairs)
    return render(_PACKAGE, "timelines.html", drawn=drawn, n_pairs=n_pairs, left_out=_left_out(results))


def _left_out(results: Mapping[str, Any]) -> str:
    """Say which lanes are missing because nothing in this run needs them."""
    names = (*results["metrics"], *results["companions"])
    needed = {feature for name in names for feature in features_of(name, results["variant"])}
    missing = [word for feature, word in LANES.items() if feature not in needed]
    if not missing:
        return ""
    official = results["variant"] == "official" and "melody" in missing
    why = "; the official motifs are made of pitch frame by frame, not of notes" if official else ""
    return f" Without a lane, since no score of this run compares them: {', '.join(missing)}{why}."
