"""The report of an inpainting run: the shared page, distributions, histograms, and contexts with players."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.annotations import MUSIB_LAYOUT, Score, Tempo, TimeSignature, Tokens
from music_evals.benchmark.contents import heading, mark, order, table_of, verdict
from music_evals.benchmark.formats import Section, format_interval, format_value, markdown_rows, render, static
from music_evals.benchmark.report import score_page
from music_evals.benchmark.score_table import OUTSIDE, ScoreTable
from music_evals.benchmark.tables import MARKDOWN
from music_evals.benchmark.tasks.inpainting import plots
from music_evals.benchmark.tasks.inpainting.runner import HEADINGS, INTERVALS, RANKING
from music_evals.metrics.divergence import histogram_bins, masses, n_bins
from music_evals.metrics.melodic_intervals import INTERVAL_BINS
from music_evals.pipelines.inpainting import FEATURES
from music_evals.protocols import CONTROL
from music_evals.symbolic import midi, noteseq
from music_evals.symbolic.notes import quantize

SHOWN_CONTEXTS = 5
"""Contexts with piano rolls: best, worst and three between, by the highlighted system's note F1."""

PICTURED = (RANKING, "position_score", "pitch_accuracy", "rhythm_accuracy")
"""Scores whose distribution over songs is drawn."""

TEMPO_BPM = 96.0
"""What is played and what can be downloaded have this tempo."""

STEP_SEC = 60 / TEMPO_BPM / (MUSIB_LAYOUT.steps_per_measure // 4)
MIDI_TICKS_PER_QUARTER = 480

_PACKAGE = "music_evals.benchmark.tasks.inpainting"
_DIVERGENCE = (
    "Left: how the feature is distributed, for the reference and two systems. Right: the divergence of each system "
    "from the reference. What does not lie well beyond its noise floor is no evidence of a difference."
)

Curve = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""Where each bin of a histogram begins, and its mass."""


def render_report(results: Mapping[str, Any], score_table: ScoreTable) -> str:
    """Return the page."""
    plots.check_backend()
    facts = {
        "variant": results["variant"],
        "protocol": results["protocol"] or "honest: no system that is compared sees the middle",
        "seeds": ", ".join(map(str, results["seeds"])),
    }
    return score_page(
        results,
        score_table,
        facts,
        lead=_lead(results),
        highlight=_highlight(results),
        pictures=_pictures(results, score_table),
        items=[_music(results, score_table)],
        script=static("player.js") + static("report.js"),
    )


def _highlight(results: Mapping[str, Any]) -> str | None:
    """Return the best model, the best system where there is no model, or None where nothing is ranked.

    One that answered every item comes before one that did not.
    """
    table, about = table_of(results), results["systems"]
    later = {name: (_failed_on_some(cells), about[name]["role"] != "model") for name, cells in table["scores"].items()}
    return min(table["ranking"], key=later.__getitem__, default=None)


def _failed_on_some(cells: Mapping[str, Any]) -> bool:
    return bool(cells[RANKING]["n_scored"] < cells[RANKING]["n"])


def _rival(results: Mapping[str, Any]) -> str | None:
    """Return the baseline that the highlighted system is shown beside."""
    rival = results["best_baseline"].get(RANKING)
    baselines = [name for name in table_of(results)["ranking"] if results["systems"][name]["role"] == "baseline"]
    chosen = rival if rival in baselines else next(iter(baselines), None)
    return None if chosen == _highlight(results) else chosen


def _lead(results: Mapping[str, Any]) -> str:
    """Return in one sentence what was found."""
    name, scores = _highlight(results), table_of(results)["scores"]
    if name is None:
        return render(_PACKAGE, "lead.html", name=None)
    cell = scores[name][RANKING]
    others = [other for other in table_of(results)["ranking"] if other != name and _failed_on_some(scores[other])]
    test = cell.get("test") or {"against": "", "p_holm": None}
    p = test["p_holm"]
    return render(
        _PACKAGE,
        "lead.html",
        name=name,
        reached=_with_interval(cell),
        n=cell["n"],
        n_scored=cell["n_scored"],
        n_not_given=cell["n_not_given"],
        others=[(other, scores[other][RANKING]) for other in others],
        against=test["against"],
        against_reached=_with_interval(scores[test["against"]][RANKING]) if test["against"] else "",
        verdict=verdict(results, name, RANKING),
        p_value="n/a" if p is None else "< 0.001" if p < 0.001 else f"= {p:.3f}",
    )


def _with_interval(cell: Mapping[str, Any]) -> str:
    interval = format_interval(cell)
    return format_value(cell["value"]) + (f" ({interval})" if interval else "")


def _words(name: str) -> str:
    return name.replace("_", " ").replace("f1", "F1")


def _pictures(results: Mapping[str, Any], score_table: ScoreTable) -> list[Section]:
    songs = score_table.songs
    sections = []
    systems = order(results, table_of(results))
    outside = [name for name in systems if results["systems"][name]["role"] in OUTSIDE]
    for metric in PICTURED:
        by_song = {
            name: plots.song_means(score_table.at(list(score_table.item_rows), name).values(metric)[:, 0], songs)
            for name in systems
        }
        picture = plots.distributions(
            f"song-{metric}", by_song, _highlight(results), label=_words(metric), outside=outside
        )
        page = render(_PACKAGE, "picture.html", picture=picture, explained="")
        sections.append(Section(f"How the songs differ: {_words(metric)}", 150 + 36 * len(systems), page))
    for title, picture in _divergences(results, score_table, systems):
        page = render(_PACKAGE, "picture.html", picture=picture, explained=_DIVERGENCE)
        sections.append(Section(f"Divergence: {title}", 280 + 36 * len(systems), page))
    return sections


def _divergences(results: Mapping[str, Any], score_table: ScoreTable, systems: Sequence[str]) -> list[tuple[str, str]]:
    """Return title and picture of each divergence; none where there is nothing but the control."""
    if list(systems) == [CONTROL]:
        return []
    variant, scores = results["variant"], table_of(results)["scores"]
    size = n_bins(variant)
    shown = [CONTROL, *filter(None, [_highlight(results), _rival(results)])]
    # where the bin of each interval begins, and its share of all that a system wrote
    edges = np.linspace(-INTERVAL_BINS / 2, INTERVAL_BINS / 2 - 1, INTERVAL_BINS)
    intervals: dict[str, Curve] = {}
    for name in shown:
        bins = score_table.scored(name).bins(INTERVALS, name)
        intervals[name] = edges, masses(bins[bins >= 0].astype(np.int64), INTERVAL_BINS)
    histograms = [(INTERVALS, intervals, "melodic interval, semitones", "intervals")]
    for metric, feature in FEATURES.items():
        curves = {}
        for name in shown:
            values = score_table.at(list(score_table.item_rows), name).by_seed(feature)
            places = histogram_bins(values[~np.isnan(values)], variant=variant)
            curves[name] = np.arange(size) / 100, masses(places, size)
        histograms.append((metric, curves, _words(feature), "items"))
    pictures = []
    for metric, curves, feature, counted in histograms:
        cells = {name: scores[name][metric] for name in systems if name != CONTROL}
        title, words = _words(metric), {"feature": feature, "counted": counted}
        picture = plots.divergences(f"div-{metric}", curves, cells, _highlight(results), label=title, **words)
        pictures.append((title, picture))
    return pictures


def _music(results: Mapping[str, Any], score_table: ScoreTable) -> Section:
    name = _highlight(results)
    if name is None:
        return Section("", 0, "")
    items = list(score_table.item_rows)
    values = _pictured_scores(score_table, items, name)
    written = np.isin(score_table.columns["item"].codes_of(items), score_table.scored(name).codes("item"))
    values = np.where(written, values, np.nan)
    defined = [row for row in np.argsort(values, kind="stable")[::-1] if not np.isnan(values[row])]
    if not defined:
        return Section("", 0, "")
    places = np.linspace(0, len(defined) - 1, min(SHOWN_CONTEXTS, len(defined)))
    picked = dict.fromkeys(items[defined[round(place)]] for place in places)
    systems = [name, *filter(None, [_rival(results)])]
    contexts = []
    for item in picked:
        context = np.array(score_table.item_rows[item]["tokens"], dtype=np.uint8)
        rolls = [_roll(item, "reference", context, context[MUSIB_LAYOUT.middle])]
        for system in systems:
            middle = score_table.prediction(item, system)[0]
            if middle is not None:
                value = float(_pictured_scores(score_table, [item], system)[0])
                tokens = np.array(middle, dtype=np.uint8)
                rolls.append(_roll(item, system, context, tokens, note=f"note F1 {format_value(value)}"))
        contexts.append((item, rolls))
    page = render(_PACKAGE, "music.html", name=name, contexts=contexts, step_sec=STEP_SEC)
    return Section("Music", 200 + 220 * (1 + len(systems)), page)


def _pictured_scores(score_table: ScoreTable, items: Sequence[str], system: str) -> npt.NDArray[np.float64]:
    """Return the scores of the seed whose music is drawn, shape (n,)."""
    by_seed = score_table.at(items, system).by_seed(RANKING)
    return by_seed[0] if len(by_seed) else np.full(len(items), np.nan)


def _roll(item: str, system: str, context: Tokens, middle: Tokens, *, note: str = "") -> dict[str, Any]:
    shown = context.copy()
    shown[MUSIB_LAYOUT.middle] = middle
    notes = noteseq.decode(shown)
    score = Score(
        notes,
        MUSIB_LAYOUT.steps_per_measure // 4,
        time_signatures=(TimeSignature(0, 4, 4),),
        tempos=(Tempo(0, TEMPO_BPM),),
        voices=(system,),
    )
    label = f"{item}, {system}"
    return {
        "system": system,
        "note": note,
        "label": label,
        "notes": json.dumps([[int(row[name]) for name in ("onset_tick", "duration_tick", "pitch")] for row in notes]),
        "file": "".join(letter if letter.isalnum() else "_" for letter in f"{item}_{system}"),
        "midi": base64.b64encode(midi.write_midi(quantize(score, MIDI_TICKS_PER_QUARTER))).decode(),
        "picture": plots.piano_roll(context, middle, label=f"Piano roll of {label}"),
    }


def compact_table(
    results: Mapping[str, Any],
    table: Mapping[str, Any],
    *,
    sizes: Mapping[str, str] | None = None,
    without: Collection[str] = (),
) -> str:
    """Return a table of a run as Markdown; what stands outside of the ranking is in italics.

    It has the few columns that a README has room for: values and marks, and one interval a row. `sizes` are the sizes
    of systems in words, for a column beside the names; the scores `without` are left out.
    """
    held = {name for cells in table["scores"].values() for name in cells}
    metrics = [name for name in HEADINGS if name in held and name not in without]
    head = [heading(results, name) for name in metrics]
    about = [] if sizes is None else ["size"]
    lines = [["system", *about, *head], ["---", *("---" for _ in about), *("---:" for _ in head)]]
    for system in order(results, table):
        label = f"`{system}`" if system in table["ranking"] else f"*`{system}`*"
        lines.append([label, *([] if sizes is None else [sizes.get(system, "")])])
        for name in metrics:
            cell, text = table["scores"][system].get(name), ""
            if cell is not None and cell["value"] is None:
                text = f"n/a ({cell['n_defined']}/{cell['n']})"
            elif cell is not None:
                text = f"{cell['value']:.3f}{MARKDOWN.marks[mark(results, table, system, name)]}"
                if name == results["ranked_by"] and cell["low"] is not None:
                    text += f" ({cell['low']:.3f} to {cell['high']:.3f})"
                elif cell.get("null") is not None:
                    text += f" (floor {cell['null']:.3f})"
            lines[-1].append(text)
    return markdown_rows(lines)
