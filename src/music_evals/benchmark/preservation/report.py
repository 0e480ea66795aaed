"""The report of a preservation run: one HTML file that needs nothing but a browser. Made from records and results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any

from music_evals.benchmark import canvas
from music_evals.benchmark.cells import format_value
from music_evals.benchmark.page import plain_table
from music_evals.benchmark.preservation.plots import PICTURE_STYLE, RIM, outward, radar, timeline
from music_evals.benchmark.report import receipt_section, score_page, shares
from music_evals.benchmark.results import Found
from music_evals.metrics.catalogue import features_of

__all__ = ["SHOWN_PAIRS", "render_report", "worst_pairs"]

SHOWN_PAIRS = 10
"""Pairs with timelines by default: the worst of each system, to equal shares."""

LANES = {"beats": "beats", "chords": "chords", "segments": "sections", "melody": "melody"}
"""Feature that is drawn -> its word."""

LEAST_AXES = 3  # two axes make no radar


def render_report(results: Mapping[str, Any], found: Found, *, timelines: int = SHOWN_PAIRS) -> str:
    """Return the page.

    Parameters
    ----------
    results
        From `preservation_results.build_results`.
    found
        The records that the results were made of.
    timelines
        Pairs to draw, and at least one of each system; 0 for none.

    Returns
    -------
    str
        HTML without any outside reference.

    Raises
    ------
    MissingBackendError
        matplotlib is not installed.

    """
    canvas.check_backend()
    return score_page(
        results,
        pictures=[_radars(results)],
        items=[_timelines(results, found, timelines)],
        receipt=_receipt(results, found),
        style=PICTURE_STYLE,
    )


def _radars(results: Mapping[str, Any]) -> str:
    names = [name for name in results["metrics"] if results["scales"][name]["direction"] != "zero"]
    if len(names) < LEAST_AXES:
        return ""
    scores = results["scores"]
    controls = {name: scores[name] for name, about in results["systems"].items() if about["role"] == "control"}
    drawn = [
        f"<div><h3>{escape(system)}</h3>\n"
        + radar(f"radar-{place}", system, {name: scores[system][name] for name in names}, controls, results["scales"])
        + "</div>"
        for place, (system, about) in enumerate(results["systems"].items())
        if about["role"] == "system"
    ]
    centre = "; ".join(f"{results['scales'][name]['title']}: {bound:g}" for name, bound in RIM.items() if name in names)
    intro = (
        "The rim is the best value of each metric, the centre its worst, linear in between; what is worse than chance "
        f"lies in the centre{f', and so does {centre} and more' if centre else ''}. Read a score between the two "
        "controls: a metric whose controls lie close together says little."
    )
    pictures = "\n".join(drawn)
    return f'<h2>At a glance</h2>\n<p>{escape(intro)}</p>\n<div class="radars">{pictures}</div>'


def worst_pairs(results: Mapping[str, Any], found: Found) -> list[tuple[Mapping[str, Any], float]]:
    """Return the pairs that can be drawn, with the mean of their places on the radar: by system, the worst first."""
    names = [name for name in results["metrics"] if results["scales"][name]["direction"] != "zero"]
    found_pairs: list[tuple[Mapping[str, Any], float]] = []
    for system, about in results["systems"].items():
        judged = []
        for pair in found.pairs.get(system, []) if about["role"] == "system" else []:
            values = [(name, found.value(pair["item"], system, name)) for name in names if "error" not in pair]
            places = [outward(name, value, results["scales"][name]) for name, value in values if not math.isnan(value)]
            if places and all(pair[side]["content"] in found.outlines for side in ("reference", "estimate")):
                judged.append((pair, math.fsum(places) / len(places)))
        found_pairs += sorted(judged, key=lambda row: (row[1], row[0]["item"]))
    return found_pairs


def _timelines(results: Mapping[str, Any], found: Found, n: int) -> str:
    pairs = worst_pairs(results, found)
    chosen = shares(pairs, n)
    if not chosen:
        return ""
    drawn = []
    for pair, mean in chosen:
        sides = [found.outlines[pair[side]["content"]] for side in ("reference", "estimate")]
        label = f"{pair['item']}, {pair['system']}"
        scores = ", ".join(
            f"{results['scales'][name]['title']} {format_value(found.value(pair['item'], pair['system'], name))}"
            for name in results["metrics"]
        )
        picture = timeline(*sides, label=f"Timeline of {label}")
        drawn.append(
            f'<h3>{escape(label)}</h3>\n<p class="muted">mean place {mean:.2f}; {escape(scores)}</p>\n{picture}'
        )
    intro = (
        f"{len(drawn)} of {len(pairs)} pairs: the worst of each system, by the mean of their places on the radar. "
        "Orange: chords that differ, beats without a partner within 70 ms, section boundaries without one within "
        "0.5 s, notes of the melody that the other file does not begin with the same pitch within "
        f"100 ms.{_left_out(results)}"
    )
    return f"<h2>Pairs</h2>\n<p>{intro}</p>\n" + "\n".join(drawn)


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


def _receipt(results: Mapping[str, Any], found: Found) -> str:
    extractors = results["extractors"]
    facts = {"variant": results["variant"], "policy": extractors.get("policy", "none")}
    backends = ([escape(name), escape(_told(told))] for name, told in extractors["features"].items())
    return receipt_section(results, found, facts, plain_table(("feature", "extractor"), backends))


def _told(about: Mapping[str, Any]) -> str:
    return "; ".join(f"{key}: {value}" for key, value in about.items() if value not in ({}, [], "", None))
