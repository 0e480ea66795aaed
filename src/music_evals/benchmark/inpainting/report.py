"""The report of a run: one HTML file that needs nothing but a browser. Made from records and results alone."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.annotations import MUSIB_LAYOUT, Score, Tempo, TimeSignature, Tokens
from music_evals.benchmark.cells import ARROWS, format_interval, format_value
from music_evals.benchmark.inpainting import plots
from music_evals.benchmark.inpainting.aggregate import RANKING, Scores
from music_evals.benchmark.inpainting.results import (
    FLOOR,
    HEADINGS,
    SUBSETS,
    columns,
    format_note,
    format_scored,
    mark,
    ordered_systems,
    verdict,
)
from music_evals.benchmark.page import SCRIPT, TEMPO_BPM, facts_table, page, plain_table, published_table
from music_evals.benchmark.versions import on_kernels
from music_evals.metrics.divergence import histogram_bins, masses, n_bins
from music_evals.pipelines.inpainting import FEATURES
from music_evals.symbolic import midi, noteseq
from music_evals.symbolic.notes import quantize

__all__ = ["render_report"]

SHOWN_CONTEXTS = 5
"""Contexts with piano rolls: best, worst and three between, by the highlighted system's note F1."""

MIDI_TICKS_PER_QUARTER = 480

WHY_DIFFERENT = "Why our numbers differ from it:"


def render_report(results: Mapping[str, Any], scores: Scores) -> str:
    """Return the page.

    Parameters
    ----------
    results
        From `results.build_results`.
    scores
        The records that the results were made of.

    Returns
    -------
    str
        HTML without any outside reference.

    Raises
    ------
    MissingBackendError
        matplotlib is not installed.

    """
    plots.check_backend()
    dataset = results["dataset"]
    place = " / ".join(part for part in (dataset["id"], dataset["config"], dataset["split"]) if part)
    sections = [
        f"<h1>Score inpainting on {escape(place)}</h1>",
        _lead(results),
        *(f"<p>Note: {escape(note)}.</p>" for note in on_kernels(results.get("kernels", ()))),
        *(_table_section(results, subset) for subset in results["tables"]),
        published_table(results["published"], HEADINGS, WHY_DIFFERENT) if results["published"] else "",
        _distributions(results, scores),
        _divergences(results, scores),
        _piano_rolls(results, scores),
        _failures(results["failures"]),
        _receipt(results, scores),
    ]
    return page(f"Score inpainting on {place}", sections, script=SCRIPT)


def _highlight(results: Mapping[str, Any]) -> str | None:
    """Return the best model, the best system where there is no model, or None where nothing is ranked."""
    ranking: Sequence[str] = results["tables"]["all"]["ranking"]
    models = [name for name in ranking if results["systems"][name]["role"] == "model"]
    return next(iter([*models, *ranking]), None)


def _rival(results: Mapping[str, Any]) -> str | None:
    """Return the baseline that the highlighted system is shown beside."""
    rival = results["best_baseline"].get(RANKING)
    baselines = [name for name in results["tables"]["all"]["ranking"] if results["systems"][name]["role"] == "baseline"]
    found = rival if rival in baselines else next(iter(baselines), None)
    return None if found == _highlight(results) else found


def _lead(results: Mapping[str, Any]) -> str:
    name = _highlight(results)
    table = results["tables"]["all"]
    text = "Nothing is ranked: every system has seen the reference" if name is None else _finding(results, name)
    counted = f"{table['n_items']} windows from {table['n_songs']} songs"
    return f'<p class="lead">{text}.</p>\n<p class="muted">{counted}, metric variant {escape(results["variant"])}.</p>'


def _finding(results: Mapping[str, Any], name: str) -> str:
    scores = results["tables"]["all"]["scores"]
    cell = scores[name][RANKING]
    text = f"<b>{escape(name)}</b> reaches a note F1 of {_with_interval(cell)}"
    if cell["n_scored"] < cell["n"]:
        text += f" on the {cell['n_scored']} of {cell['n']} windows where it did not fail"
    test = cell.get("test")
    if test:
        text += (
            f" and is {verdict(results, name, RANKING, cell)} the best baseline, <b>{escape(test['against'])}</b>, "
            f"which reaches {_with_interval(scores[test['against']][RANKING])}; corrected p {_p_value(test['p_holm'])}"
        )
    return text


def _with_interval(cell: Mapping[str, Any]) -> str:
    interval = format_interval(cell)
    return format_value(cell["value"]) + (f" ({interval})" if interval else "")


def _p_value(value: float | None) -> str:
    if value is None:
        return "n/a"
    return "&lt; 0.001" if value < 0.001 else f"= {value:.3f}"


def _table_section(results: Mapping[str, Any], subset: str) -> str:
    table = results["tables"][subset]
    names = columns(table)
    head = "".join(
        f'<th scope="col">{escape(HEADINGS[name])} {ARROWS[results["metrics"][name]["direction"]]}</th>'
        for name in names
    )
    rows = "\n".join(_table_row(results, table, system, names) for system in ordered_systems(results, table))
    confidence = 100 * results["intervals"]["confidence"]
    note = (
        f"Below each score its {confidence:g} % interval, clustered by song; then the noise floor of a divergence; how "
        "many items define the score, where not all do. ↑ higher, ↓ lower is better. A system that failed on items is "
        f"ranked last. Systems in grey have seen the reference and are compared with nothing. {FLOOR}"
    )
    if results["best_baseline"]:
        note += (
            " ▲ significantly better, ▼ worse than the best baseline of that metric (★), which was chosen on the "
            "validation split; paired by song, Holm-corrected over the metrics."
        )
    return (
        f"<h2>Scores: {escape(SUBSETS[subset])}</h2>\n"
        f'<div class="scroll"><table><caption>{table["n_items"]} items, {table["n_songs"]} songs, ranked by note F1'
        f'</caption><thead><tr><th scope="col">system</th>{head}</tr></thead><tbody>\n{rows}\n</tbody></table></div>\n'
        f'<p class="muted">{note}</p>'
    )


def _table_row(results: Mapping[str, Any], table: Mapping[str, Any], system: str, names: Iterable[str]) -> str:
    kind = "highlight" if system == _highlight(results) else "" if system in table["ranking"] else "outside"
    cells = "".join(_table_cell(results, system, name, table["scores"][system].get(name)) for name in names)
    return f'<tr class="{kind}"><th scope="row">{escape(system)}{format_scored(table, system)}</th>{cells}</tr>'


def _table_cell(results: Mapping[str, Any], system: str, metric: str, cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return "<td></td>"
    sign = mark(results, system, metric, cell)
    signs = {
        "+": ' <span class="good" aria-label="better than the best baseline">▲</span>',
        "-": ' <span class="bad" aria-label="worse than the best baseline">▼</span>',
        "=": ' <span aria-label="the best baseline">★</span>',
    }
    test, title = cell.get("test"), ""
    if test:
        title = (
            f' title="{escape(test["against"], quote=True)}: difference {format_value(test["difference"])}, '
            f'p {format_value(test["p_value"])}, corrected {format_value(test["p_holm"])}, n {test["n"]}"'
        )
    spread = "" if cell["seed_std"] is None else f"seeds ±{cell['seed_std']:.3f}"
    small = "".join(f"<small>{line}</small>" for line in (format_interval(cell), format_note(cell), spread) if line)
    return f"<td{title}>{format_value(cell['value'])}{signs.get(sign, '')}{small}</td>"


def _words(name: str) -> str:
    return name.replace("_", " ").replace("f1", "F1")


def _distributions(results: Mapping[str, Any], scores: Scores) -> str:
    order = ordered_systems(results, results["tables"]["all"])
    drawn = []
    for metric in (RANKING, "position_score", "pitch_accuracy", "rhythm_accuracy"):
        by_song = {name: plots.song_means(scores.item_means(name, metric), scores.songs) for name in order}
        drawn.append(f"<h3>{escape(_words(metric))}</h3>")
        drawn.append(plots.distributions(f"song-{metric}", by_song, _highlight(results), label=_words(metric)))
    return "<h2>How the songs differ</h2>\n" + "\n".join(drawn)


def _divergences(results: Mapping[str, Any], scores: Scores) -> str:
    table = results["tables"]["all"]
    order = ordered_systems(results, table)
    control = next(name for name in order if results["systems"][name]["role"] == "control")
    if order == [control]:
        return ""
    shown = [control, *filter(None, [_highlight(results), _rival(results)])]
    variant = results["variant"]
    size = n_bins(variant)
    edges = np.arange(size) / 100
    drawn = []
    for metric, feature in FEATURES.items():
        curves = {}
        for name in shown:
            values = scores.values[name].get(feature, np.empty((0, 0)))
            curves[name] = edges, masses(histogram_bins(values[~np.isnan(values)], variant=variant), size)
        cells = {name: table["scores"][name][metric] for name in order if name != control}
        drawn.append(f"<h3>{escape(_words(metric))}</h3>")
        drawn.append(
            plots.divergences(
                f"div-{metric}", curves, cells, _highlight(results), label=_words(metric), feature=_words(feature)
            )
        )
    intro = (
        "Left: how a feature of the items is distributed, for the reference and two systems. Right: the divergence of "
        "each system from the reference. What does not lie well beyond its noise floor is no evidence of a "
        f"difference. {FLOOR}"
    )
    return f"<h2>Divergences</h2>\n<p>{intro}</p>\n" + "\n".join(drawn)


def _piano_rolls(results: Mapping[str, Any], scores: Scores) -> str:
    name = _highlight(results)
    if name is None:
        return ""
    values = _drawn_scores(scores, name)
    defined = [row for row in np.argsort(values, kind="stable")[::-1] if not np.isnan(values[row])]
    if not defined:
        return ""
    picked = dict.fromkeys(
        int(defined[round(place)]) for place in np.linspace(0, len(defined) - 1, min(SHOWN_CONTEXTS, len(defined)))
    )
    systems = [name, *filter(None, [_rival(results)])]
    drawn = [_context(scores, row, systems) for row in picked]
    intro = (
        f"From the best to the worst context of {escape(name)}. Grey: past and future, which every system is shown. "
        "The tinted span is the middle. Of a system with several seeds, the first is drawn and its own score given."
    )
    return f"<h2>Music</h2>\n<p>{intro}</p>\n" + "\n".join(drawn)


def _drawn_scores(scores: Scores, system: str) -> npt.NDArray[np.float64]:
    """Scores of the seed whose music is drawn, shape (n,)."""
    by_seed = scores.values[system].get(RANKING)
    return np.full(len(scores.item_ids), np.nan) if by_seed is None else by_seed[0]


def _context(scores: Scores, row: int, systems: Sequence[str]) -> str:
    item, context = scores.item_ids[row], scores.contexts[row]
    figures = [_roll(item, "reference", context, context[MUSIB_LAYOUT.middle])]
    for name in systems:
        middle = scores.middles[name][0, row]
        value = float(_drawn_scores(scores, name)[row])
        if (middle < 130).all():
            figures.append(_roll(item, name, context, middle, note=f"note F1 {format_value(value)}"))
    return f"<h3>{escape(item)}</h3>\n" + "\n".join(figures)


def _roll(item: str, system: str, context: Tokens, middle: Tokens, *, note: str = "") -> str:
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
    content = base64.b64encode(midi.write_midi(quantize(score, MIDI_TICKS_PER_QUARTER))).decode()
    rows = json.dumps([[int(row[name]) for name in ("onset_tick", "duration_tick", "pitch")] for row in notes])
    file = "".join(letter if letter.isalnum() else "_" for letter in f"{item}_{system}")
    label = f"{item}, {system}"
    kind = "" if note else ' class="reference"'
    return (
        f'<figure{kind}><figcaption><b>{escape(system)}</b><span class="muted">{escape(note)}</span>'
        f'<button type="button" data-notes="{escape(rows, quote=True)}" aria-label="Play {escape(label, quote=True)}">'
        f'Play</button><a download="{file}.mid" href="data:audio/midi;base64,{content}">MIDI</a></figcaption>'
        f"{plots.piano_roll(context, middle, label=f'Piano roll of {label}')}</figure>"
    )


def _failures(failures: Sequence[Mapping[str, Any]]) -> str:
    if not failures:
        return ""
    rows = (
        [
            escape(str(row["item"])),
            escape(str(row["system"] or "")),
            "" if row["seed"] is None else str(row["seed"]),
            escape(row["metric"] or "all"),
            escape(row["error"]),
        ]
        for row in failures
    )
    return f"<h2>Failures</h2>\n<p>{len(failures)} results failed and are in no mean.</p>\n" + plain_table(
        ("item", "system", "seed", "metric", "reason"), rows
    )


def _receipt(results: Mapping[str, Any], scores: Scores) -> str:
    dataset = results["dataset"]
    facts = {
        "dataset": " / ".join(str(dataset[key]) for key in ("id", "config", "split") if dataset[key]),
        "revision": dataset["revision"] or "local files",
        "content hash of the split": dataset["fingerprint"],
        "variant": results["variant"],
        "protocol": results["protocol"] or "honest: no system that is compared sees the middle",
        "seeds": ", ".join(map(str, results["seeds"])),
        "intervals": "{confidence:.0%}, {n_resamples} resamples, seed {seed}, clustered by {clusters}".format(
            **results["intervals"]
        ),
        "wall time": f"{scores.wall_time_sec:.0f} s",
        "processor kernels": "; ".join(results.get("kernels", ())),
        **{f"version of {name}": version for name, version in results["versions"].items()},
    }
    systems = (
        [
            escape(name),
            escape(held["role"]),
            f"<code>{escape(held['content_hash'])}</code>",
            escape(", ".join(map(str, held["seeds"]))),
            escape(_details(held)),
        ]
        for name, held in results["systems"].items()
    )
    head = ("system", "role", "content hash", "seeds", "options")
    return f"<h2>Receipt</h2>\n{facts_table(facts)}\n{plain_table(head, systems)}"


def _details(held: Mapping[str, Any]) -> str:
    known = {"role", "content_hash", "seeds", "sees_reference"}
    return ", ".join(f"{key} {value}" for key, value in held.items() if key not in known and value is not None)
