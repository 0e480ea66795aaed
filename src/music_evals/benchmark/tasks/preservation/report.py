"""The report of a preservation run: the shared page, radars, differences, a list of pairs, timelines with players."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from music_evals.benchmark import formats
from music_evals.benchmark.contents import heading, is_significant, order
from music_evals.benchmark.formats import Section, counted, format_difference, format_value, render, static
from music_evals.benchmark.report import Ranked, score_page, shares
from music_evals.benchmark.score_table import Floats, ScoreTable
from music_evals.benchmark.tasks.preservation.pairs import CONTROLS, UNRELATED
from music_evals.benchmark.tasks.preservation.plane import mean_of_rows
from music_evals.benchmark.tasks.preservation.players import AUDIO_FOLDER, MOST_SEC, Players, clock
from music_evals.benchmark.tasks.preservation.plots import PLANE_PX, RIM, outward, plane_figure, radar, timeline
from music_evals.metrics.catalogue import features_of

MOST_PAIRS = 2000
"""Pairs that are listed, the worst of each system to equal shares; the records hold all."""

SHOWN_AT_FIRST = 20
"""Rows of that list; a button shows the others."""

SHOWN_PAIRS = 10
"""Pairs with timelines by default: the worst of each system, to equal shares."""

FIRST_PAIRS, FIRST_RADARS = 2, 4
"""That are shown at once; the others at a click."""

LANES = {"beats": "beats", "chords": "chords", "segments": "sections", "melody": "melody"}
"""Feature that is drawn -> its word."""

LEAST_AXES = 3  # two axes make no radar

N_CHANCE = 2  # scores of unrelated music in the sentence on chance

_PACKAGE = "music_evals.benchmark.tasks.preservation"

_STYLES = ("timelines.css", "ab_player.css", "pairs.css")
_SCRIPTS = ("ab_player.js", "pairs.js", "report.js")


def render_report(
    results: Mapping[str, Any], score_table: ScoreTable, *, timelines: int = SHOWN_PAIRS, players: Players | None = None
) -> str:
    """Return the page; with `players` the pairs that are drawn can be played, and their music is written to files."""
    formats.check_backend()
    facts = {"variant": results["variant"], "policy": results["extractors"].get("policy", "none")}
    ranked = worst_pairs(results, score_table)
    shown = shares(ranked, timelines)
    anchors = {(pair["item"], pair["system"]): f"pair-{place}" for place, (pair, _) in enumerate(shown, start=1)}
    # what the published section says of chance is what unrelated music reaches in this run
    published = results["published"]
    differing = {name: why for name, why in published["differences"].items() if name != "chance"}
    if "chance" in published["differences"] and (chance := _chance(results)):
        differing["chance"] = chance
    return score_page(
        {**results, "published": {**published, "differences": differing}},
        score_table,
        facts,
        pictures=[_radars(results), pair_list(results, score_table, anchors)],
        items=[_timelines(results, score_table, shown, players, n_pairs=sum(len(pairs) for pairs, _ in ranked))],
        compared=_differences(results, score_table),
        first=plane_section(results),
        style="".join(map(static, _STYLES)),
        script="".join(map(static, _SCRIPTS)),
    )


def plane_section(results: Mapping[str, Any]) -> Section | None:
    """Return the plane of a run, and that of each facet; None where success is not known."""
    plane = results.get("plane")
    if not plane:
        return None
    points = {name: plane["systems"][name] for name in order(results, results) if name in plane["systems"]}
    facets = plane["facets"] if plane["facets"][1:] else []
    page = render(
        _PACKAGE,
        "plane.html",
        picture=plane_figure(points),
        facets=[(facet, plane_figure(points, axis=facet)) for facet in facets],
        groups=results["wording"]["groups"],
    )
    return Section("Success over preservation", PLANE_PX[1] + 400, page)


def _chance(results: Mapping[str, Any]) -> str:
    """Say where unrelated music stands best in this run; empty without a row of it."""
    cells = results["scores"].get(UNRELATED, {})
    places = {
        name: float(outward(name, cells[name]["value"], results["scales"][name]))
        for name in placed(results)
        if name in cells
    }
    best = sorted((name for name, place in places.items() if place > 0), key=lambda name: -places[name])[:N_CHANCE]
    if not best:
        return ""
    reached = " and ".join(
        f"{format_value(cells[name]['value'])} in {results['scales'][name]['title']}" for name in best
    )
    return (
        f"In this run {UNRELATED} reaches {reached}: read every score between the two control rows, not between the "
        "worst and the best value."
    )


def _radars(results: Mapping[str, Any]) -> Section:
    names = placed(results)
    if len(names) < LEAST_AXES:
        return Section("", 0, "")
    scores, scales = results["scores"], results["scales"]
    controls = {name: scores[name] for name in CONTROLS if name in results["systems"]}
    radars = [
        (system, radar(f"radar-{place}", system, {name: scores[system][name] for name in names}, controls, scales))
        for place, (system, about) in enumerate(results["systems"].items())
        if about["role"] == "system"
    ]
    centre = "; ".join(f"{scales[name]['title']}: {bound:g}" for name, bound in RIM.items() if name in names)
    page = render(_PACKAGE, "radars.html", radars=radars, centre=centre, first=FIRST_RADARS)
    return Section("At a glance", 150 + 480 * math.ceil(min(len(radars), FIRST_RADARS) / 2), page)


def worst_pairs(results: Mapping[str, Any], score_table: ScoreTable) -> list[Ranked]:
    """Return the pairs of each system that can be drawn, with the means of their places on the radar, worst first."""
    import pyarrow as pa

    ranked: list[Ranked] = []
    for system in score_table.compared:
        pairs = score_table.scored(system)
        means, known = mean_places(results, pairs), score_table.outlines
        # both files have an outline
        references = [content in known for content in pairs.columns["reference"].categories.to_pylist()]
        estimates = [content in known for content in pairs.estimates.take(pa.array(pairs.rows)).to_pylist()]
        complete = np.array([*references, False])[pairs.codes("reference")] & np.array(estimates, dtype=bool)
        drawable = np.flatnonzero(~np.isnan(means) & complete)
        order = drawable[np.argsort(means[drawable], kind="stable")]  # by item where they are equal
        ranked.append((pairs.take(order), means[order]))
    return ranked


def _timelines(
    results: Mapping[str, Any],
    score_table: ScoreTable,
    chosen: Sequence[tuple[Mapping[str, Any], float]],
    players: Players | None,
    *,
    n_pairs: int,
) -> Section:
    from markupsafe import Markup

    timelines = []
    for place, (pair, mean) in enumerate(chosen, start=1):
        item, system = pair["item"], pair["system"]
        label = f"{item}, {system}"
        sides = [score_table.outlines[pair[side]["content"]] for side in ("reference", "estimate")]
        values = {name: format_value(score_table.value(item, system, name)) for name in results["metrics"]}
        scores = ", ".join(f"{results['scales'][name]['title']} {value}" for name, value in values.items())
        player = players.player(pair) if players else None
        picture = Markup(timeline(*sides, label=f"Timeline of {label}", playable=player is not None))  # noqa: S704  (escaped there)
        # letters, digits and underscores alone
        stems = ["".join(sign if sign.isalnum() else "_" for sign in f"{item}_{name}") for name in ("original", system)]
        timelines.append(
            {
                "label": label,
                "anchor": f"pair-{place}",
                "mean": mean,
                "scores": scores,
                "picture": picture,
                "player": player,
                "end": clock(player.seconds) if player else "",
                "files": [f"{stem[:80]}.flac" for stem in stems],
            }
        )
    if players:
        players.tidy()
    if not timelines:
        return Section("", 0, "")
    page = render(
        _PACKAGE,
        "timelines.html",
        drawn=timelines,
        first=FIRST_PAIRS,
        n_pairs=n_pairs,
        left_out=_left_out(results),
        remarks=_on_players(players),
    )
    return Section("Pairs", 300 + 420 * min(len(timelines), FIRST_PAIRS), page)


def _on_players(players: Players | None) -> list[str]:
    """Return remarks on the players, and on pairs without one."""
    if players is None or players.place == "none":
        return ["This page was made without players."]
    where = {
        "beside": f"in the folder {AUDIO_FOLDER}, which belongs to this page, as FLAC of 16 bits",
        "embedded": "in this page, as FLAC of 16 bits, mixed down to mono at 22.05 kHz",
    }
    remarks = [
        f"The music lies {where[players.place]}; of each file the first {MOST_SEC / 60:g} minutes.",
        "The keys of a player work once you have clicked it.",
    ]
    if players.missing:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in players.missing.items())
        remarks.append(f"Without a player, since a file cannot be heard: {reasons}.")
    return remarks


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


MOST_OPEN = 3
"""Comparisons of two systems that are shown at once; where there are more, each is shown on demand."""


def _differences(results: Mapping[str, Any], score_table: ScoreTable) -> Section | None:
    """Return a table for each two systems that share items; None where no two do."""
    couples = [
        _couple(results, score_table, first, second, list(tests))
        for (first, second), tests in itertools.groupby(results["comparisons"], key=lambda test: (test["a"], test["b"]))
    ]
    if not couples:
        return None
    page = render(_PACKAGE, "differences.html", couples=couples, most_open=MOST_OPEN)
    n_rows = sum(len(couple["rows"]) for couple in couples) if len(couples) <= MOST_OPEN else 0
    return Section("Systems compared", 200 + 45 * n_rows + 45 * len(couples), page)


def _couple(
    results: Mapping[str, Any], score_table: ScoreTable, first: str, second: str, tests: list[Mapping[str, Any]]
) -> dict[str, Any]:
    a, b = score_table.paired(first, second)
    sizes = [results["systems"][name]["n_pairs"] for name in (first, second)]
    rows = []
    for test in tests:
        sides = np.array([side.values(test["metric"])[:, 0] for side in (a, b)])
        means = sides[:, ~np.isnan(sides).any(axis=0)].mean(axis=1) if test["n"] else (np.nan, np.nan)
        better, direction = "", results["scales"][test["metric"]]["direction"]
        if is_significant(test):
            higher = first if test["difference"] > 0 else second
            lower = second if higher == first else first
            better = {"higher": higher, "lower": lower}.get(direction, "differ")
        rows.append(
            {
                "title": heading(results, test["metric"]),
                "means": [format_value(float(mean)) for mean in means],
                "difference": format_difference(test),
                "p_value": "n/a" if test["p_holm"] is None else f"{test['p_holm']:.4f}",
                "better": better,
                "n": test["n"],
            }
        )
    items = results["wording"]["items"]
    part = "" if sizes == [len(a), len(a)] else f" (of {sizes[0]} and {sizes[1]})"
    return {
        "names": (first, second),
        "shared": f"{counted(len(a), items)}{part}",
        "n_significant": sum(map(is_significant, tests)),
        "rows": rows,
        "table": [
            ["score", first, second, "difference", "p, corrected", "better, p < 0.05", "pairs"],
            *(
                [row["title"], *row["means"], row["difference"], row["p_value"], row["better"] or "none", row["n"]]
                for row in rows
            ),
        ],
    }


def placed(results: Mapping[str, Any]) -> list[str]:
    """Return the metrics that have a place on the radar: those of which more, or less, is better."""
    return [name for name in results["metrics"] if results["scales"][name]["direction"] != "zero"]


def mean_places(results: Mapping[str, Any], pairs: ScoreTable) -> Floats:
    """Return the mean of the places of each pair on the radar, 1 the best; NaN for a pair that has none."""
    names = placed(results)
    if not names:
        return np.full(len(pairs), np.nan)
    columns = zip(names, pairs.values(*names).T, strict=True)
    places = np.array([outward(name, column, results["scales"][name]) for name, column in columns])
    return mean_of_rows(places.T)


def pair_list(results: Mapping[str, Any], score_table: ScoreTable, anchors: Mapping[tuple[str, str], str]) -> Section:
    """Return table and picture; `anchors` are the places of the page where pairs are drawn, by item and system."""
    every = {system: score_table.scored(system) for system in score_table.systems}
    held = {system: pairs for system, pairs in every.items() if len(pairs)}
    if not held:
        return Section("", 0, "")
    # how many pairs each system may show, so that all together are not too many
    lengths = [len(pairs) for pairs in held.values()]
    share = next((n for n in range(max(lengths), 1, -1) if sum(min(n, mine) for mine in lengths) <= MOST_PAIRS), 1)
    rows: list[tuple[int, str, str, list[tuple[str, float | str | None]]]] = []
    for place, (system, pairs) in enumerate(held.items()):
        worst = pairs.take(np.argsort(mean_places(results, pairs), kind="stable")[:share])  # NaN comes last
        items = worst.text("item")
        for item, values in zip(items, worst.values(*score_table.metrics).tolist(), strict=True):
            # each as it is shown, and what it is sorted by: None where it is undefined
            keys = (float(f"{value:.6g}") if np.isfinite(value) else str(value) for value in values)
            cells = [
                (format_value(value), None if np.isnan(value) else key) for value, key in zip(values, keys, strict=True)
            ]
            rows.append((place, item, anchors.get((item, system), ""), cells))
    # drawn first are two scores, of two facets where that is possible, that take the most values
    scales = results["scales"]
    columns = np.concatenate([pairs.values(*scales) for pairs in held.values()]).T
    n_values = [len(np.unique(column[np.isfinite(column)])) for column in columns]
    first, facets = int(np.argmax(n_values)), [scale["facet"] for scale in scales.values()]
    others = [place for place, facet in enumerate(facets) if facet != facets[first]] or [len(facets) - 1]
    page = render(
        _PACKAGE,
        "pair_list.html",
        rows=rows,
        held={"systems": list(held), "rows": rows},
        n_pairs=sum(map(len, every.values())),
        systems=[(name, results["systems"][name]["role"] == "control") for name in held],
        titles=[heading(results, name) for name in score_table.metrics],
        n_metrics=len(results["metrics"]),
        axes=(first, max(others, key=lambda place: n_values[place])),
        shown_at_first=SHOWN_AT_FIRST,
    )
    return Section("Pairs by metric", 1000 + 52 * min(len(rows), SHOWN_AT_FIRST), page)
