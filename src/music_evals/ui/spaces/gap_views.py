"""What the inpainting page shows and hands out: candidates in their place, scores, notes compared, MIDI, and code.

The code is Python that gives the same candidates, and a command that scores them.
"""

from __future__ import annotations

import functools
import io
import math
import os
import zipfile
from collections.abc import Sequence
from typing import Any

from music_evals.annotations import Tokens
from music_evals.metrics.catalogue import INPAINTING_METRICS
from music_evals.pipelines.gaps.filling import SCORES, Candidate
from music_evals.ui.assets import html
from music_evals.ui.spaces import gap_filling
from music_evals.ui.widgets import roll_view
from music_evals.ui.widgets.bars import number
from music_evals.ui.widgets.roll_editor import write_melody
from music_evals.ui.widgets.roll_view import sentences, summary

DESCRIPTIONS = {
    "note_f1": "notes with the true position and pitch; the score to rank with",
    "position_score": "notes that start where true notes start",
    "pitch_accuracy": "of the shared positions, those with the true pitch",
    "rhythm_accuracy": "of the shared positions, those with the true length",
}


def show_filling(filling: gap_filling.Filling) -> str:
    """Return candidates, scores and note diffs as HTML."""
    gap, melody = filling.request.gap, filling.melody
    truth = melody.tokens[gap]
    rolls = [_notes_of(filling, candidate) for candidate in filling.candidates]
    true_notes = roll_view.context_notes(melody.tokens, truth, kind="true", gap=gap)
    pitches = roll_view.pitch_range([*true_notes, *(note for roll in rolls for note in roll)])
    draw = functools.partial(roll_view.roll_svg, pitches=pitches, first_measure=melody.first_measure, gap=gap)
    kinds = {"outside", *(("true", "kept", "missed", "extra") if filling.request.evaluate else ("filled",))}
    svg = draw(true_notes, label=_label("The true middle", filling))
    evaluated = filling.candidates if filling.request.evaluate else ()
    return html(
        "candidates.html",
        notes=filling.notes,
        numbers=[candidate.number for candidate in evaluated],
        scores=[_score_row(name, evaluated) for name in SCORES] if evaluated else [],
        undefined=any(math.isnan(value) for candidate in evaluated for value in candidate.scores.values()),
        truth=roll_view.figure_html("The true middle", svg, tokens=melody.tokens, file_name="reference", gap=gap)
        if filling.request.evaluate
        else "",
        legend=roll_view.legend_html(kinds),
        figures=[
            _candidate(filling, candidate, roll, draw)
            for candidate, roll in zip(filling.candidates, rolls, strict=True)
        ],
    )


def pairs_archive(filling: gap_filling.Filling) -> bytes:
    """Return a ZIP of MIDI files; with a true middle in the form that ``music-evals inpainting --pairs`` reads."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for candidate in filling.candidates:
            name = f"candidate_{candidate.number}"
            if filling.request.evaluate:
                archive.writestr(f"{name}_reference.mid", roll_view.midi_bytes(filling.melody.tokens))
                archive.writestr(f"{name}_prediction.mid", roll_view.midi_bytes(_whole(filling, candidate)))
            else:
                archive.writestr(f"{name}.mid", roll_view.midi_bytes(_whole(filling, candidate)))
    return buffer.getvalue()


def _whole(filling: gap_filling.Filling, candidate: Candidate) -> Tokens:
    whole = filling.melody.tokens.copy()
    whole[filling.request.gap] = candidate.middle
    return whole


def _notes_of(filling: gap_filling.Filling, candidate: Candidate) -> list[roll_view.RollNote]:
    context, gap = filling.melody.tokens, filling.request.gap
    if candidate.diff is None:
        return roll_view.context_notes(context, candidate.middle, gap=gap)
    return roll_view.diff_roll(context, candidate.middle, candidate.diff, gap=gap)


def _label(title: str, filling: gap_filling.Filling) -> str:
    first, request = filling.melody.first_measure, filling.request
    gap = first + request.first - 1
    return f"{title}: piano roll of measures {first} to {first + 15}, gap {gap} to {gap + request.n_measures - 1}"


def _candidate(filling: gap_filling.Filling, candidate: Candidate, roll: list[roll_view.RollNote], draw: Any) -> str:
    title, gap = f"Candidate {candidate.number}", filling.request.gap
    remarks = [filling.followed(candidate)]
    if candidate.scores:
        remarks.append(f"note F1 {number(candidate.scores['note_f1'])}")
    name = f"{filling.request.system.replace('/', '_')}_{filling.request.seed}_{candidate.number}"
    locks = roll_view.locks_html(roll, gap, filling.melody.first_measure) if filling.lockable else ""
    return roll_view.figure_html(
        title,
        draw(roll, label=_label(title, filling), lockable=filling.lockable),
        tokens=_whole(filling, candidate),
        file_name=name,
        note="; ".join(filter(None, remarks)),
        details=_diff(filling, candidate) + locks,
        gap=gap,
    )


def _diff(filling: gap_filling.Filling, candidate: Candidate) -> str:
    if candidate.diff is None:
        return ""
    lines = sentences(candidate.diff, filling.melody.first_measure + filling.request.first - 1)
    return html("note_diff.html", summary=summary(candidate.diff), sentences=lines)


def _score_row(name: str, candidates: Sequence[Candidate]) -> dict[str, Any]:
    """Return a score of all candidates, with its range and direction."""
    info = INPAINTING_METRICS[name]
    return {
        "name": name,
        "words": DESCRIPTIONS[name],
        "scale": f"{info.low:g} to {info.high:g}, {info.direction} is better",
        "values": [number(candidate.scores[name]) for candidate in candidates],
    }


_CODE = """\
from music_evals.benchmark.tasks.inpainting.systems import {imported}
from music_evals.pipelines.gaps.filling import draw_candidates
from music_evals.pipelines.gaps.steering import {steering}
from music_evals.ui.widgets.roll_editor import read_melody

tokens = read_melody(
    '{melody}'
).tokens
gap = slice({start}, {stop})
{system}
{inpainter}
shown, hidden = hide_gap(tokens, gap, {keep})
candidates = list(
    draw_candidates(
        shown, hidden, inpainter, gap=gap, seed={seed}, n_candidates={n}, evaluate={evaluate}, truth=tokens[gap],
        likelihood=False,
    )
)
for candidate in candidates:
    print(candidate.row)
"""

_SKETCH = """\
from {module} import {name}

sketch = {name}({field}=drawn_sketch(tokens[gap], "{kind}"))
inpainter = Sketched(system.inpainter, sketch)"""


def python_code(places: gap_filling.Places, filling: gap_filling.Filling) -> str:
    """Return a script that gives the same candidates and scores."""
    request = filling.request
    model = gap_filling.model_of(gap_filling.models(places), request.system)
    if model is not None:
        options = gap_filling.options_of(model, request.decoding, request.temperature)
        place = "".join(f", {name}={value!r}" for name, value in options.items()).replace("'", '"')
        imported, system = "load_model", f'system = load_model("{_place(model, filling)}"{place})'
    elif request.system in gap_filling.FITTED:
        imported = "baseline_system"
        data = gap_filling.DATASET if os.path.isdir(str(places.dataset)) else places.dataset  # noqa: PTH112  (a Hub id is no path)
        system = (
            "from music_evals.benchmark.tasks.inpainting.items import load_items\n\n"
            f'train = load_items("{data}", "{gap_filling.DATASET_CONFIG}", "train").contexts\n'
            f'system = baseline_system("{request.system}", train)'
        )
    else:
        imported, system = "baseline_system", f'system = baseline_system("{request.system}", None)'
    sketched = request.sketch != gap_filling.NO_SKETCH
    return _CODE.format(
        imported=imported,
        steering="Sketched, drawn_sketch, hide_gap" if sketched else "hide_gap",
        melody=write_melody(filling.melody),
        start=request.gap.start,
        stop=request.gap.stop,
        system=system,
        inpainter=_sketch(request.sketch, model) if sketched else "inpainter = system.inpainter",
        keep=list(request.keep),
        seed=request.seed,
        n=filling.n_candidates,
        evaluate=request.evaluate,
    )


def shell_code(filling: gap_filling.Filling) -> str:
    """Return the command that scores the candidates of the downloaded archive again."""
    if not filling.request.evaluate:
        return "# the true middle is not known: there is nothing to score; see the Python"
    if not filling.request.is_middle:
        return "# the command scores measures 7 to 10 of sixteen, and this gap is another one; see the Python"
    return (
        "# pairs.zip is the MIDI download of the page: the same middles against the same truth\n"
        "unzip pairs.zip -d pairs\n"
        "music-evals inpainting --pairs pairs --baselines none --resamples 0 --out results/pairs"
    )


def _sketch(kind: str, model: gap_filling.Model | None) -> str:
    module, _, name = gap_filling.abilities(model).sketch.partition(":")
    return _SKETCH.format(module=module, name=name, kind=kind, field="rhythms" if kind == "rhythm" else "pitches")


def _place(model: gap_filling.Model, filling: gap_filling.Filling) -> str:
    """Return what a reader's own machine calls a model: a Hub id with its revision, or a folder of a clone."""
    if os.path.isdir(model.place):  # noqa: PTH112  (a Hub id is no path)
        return f"models/{model.name}" if "/" in model.name else model.name
    revision = filling.receipt.get("revision")
    return f"{model.place}@{revision}" if revision else model.place
