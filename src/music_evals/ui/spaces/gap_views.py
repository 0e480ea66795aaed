"""What the inpainting page shows and hands out: candidates in their place, scores, notes compared, MIDI."""

from __future__ import annotations

import functools
import io
import math
import zipfile
from collections.abc import Sequence
from typing import Any

from music_evals.annotations import Tokens
from music_evals.metrics.catalogue import INPAINTING_METRICS
from music_evals.pipelines.gaps.filling import SCORES, Candidate
from music_evals.ui.assets import html
from music_evals.ui.spaces.gap_filling import Filling
from music_evals.ui.widgets.bars import number
from music_evals.ui.widgets.note_diff import sentences, summary
from music_evals.ui.widgets.roll_view import (
    RollNote,
    context_notes,
    diff_roll,
    figure_html,
    legend_html,
    locks_html,
    midi_bytes,
    pitch_range,
    roll_svg,
)

__all__ = ["pairs_archive", "show_filling"]

DESCRIPTIONS = {
    "note_f1": "notes with the true position and pitch; the score to rank with",
    "position_score": "notes that start where true notes start",
    "pitch_accuracy": "of the shared positions, those with the true pitch",
    "rhythm_accuracy": "of the shared positions, those with the true length",
}


def show_filling(filling: Filling) -> str:
    """Return candidates, scores and note diffs as HTML."""
    gap, melody = filling.request.gap, filling.melody
    truth = melody.tokens[gap]
    rolls = [_notes_of(filling, candidate) for candidate in filling.candidates]
    true_notes = context_notes(melody.tokens, truth, kind="true", gap=gap)
    pitches = pitch_range([*true_notes, *(note for roll in rolls for note in roll)])
    draw = functools.partial(roll_svg, pitches=pitches, first_measure=melody.first_measure, gap=gap)
    kinds = {"outside", *(("true", "kept", "missed", "extra") if filling.request.evaluate else ("filled",))}
    svg = draw(true_notes, label=_label("The true middle", filling))
    evaluated = filling.candidates if filling.request.evaluate else ()
    return html(
        "candidates.html",
        notes=filling.notes,
        numbers=[candidate.number for candidate in evaluated],
        scores=[_score_row(name, evaluated) for name in SCORES] if evaluated else [],
        undefined=any(math.isnan(value) for candidate in evaluated for value in candidate.scores.values()),
        truth=figure_html("The true middle", svg, tokens=melody.tokens, file_name="reference", gap=gap)
        if filling.request.evaluate
        else "",
        legend=legend_html(kinds),
        figures=[
            _candidate(filling, candidate, roll, draw)
            for candidate, roll in zip(filling.candidates, rolls, strict=True)
        ],
    )


def pairs_archive(filling: Filling) -> bytes:
    """Return a ZIP of MIDI files; with a true middle in the form that ``music-evals inpainting --pairs`` reads."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for candidate in filling.candidates:
            name = f"candidate_{candidate.number}"
            if filling.request.evaluate:
                archive.writestr(f"{name}_reference.mid", midi_bytes(filling.melody.tokens))
                archive.writestr(f"{name}_prediction.mid", midi_bytes(_whole(filling, candidate)))
            else:
                archive.writestr(f"{name}.mid", midi_bytes(_whole(filling, candidate)))
    return buffer.getvalue()


def _whole(filling: Filling, candidate: Candidate) -> Tokens:
    whole = filling.melody.tokens.copy()
    whole[filling.request.gap] = candidate.middle
    return whole


def _notes_of(filling: Filling, candidate: Candidate) -> list[RollNote]:
    context, gap = filling.melody.tokens, filling.request.gap
    if candidate.diff is None:
        return context_notes(context, candidate.middle, gap=gap)
    return diff_roll(context, candidate.middle, candidate.diff, gap=gap)


def _label(title: str, filling: Filling) -> str:
    first, request = filling.melody.first_measure, filling.request
    gap = first + request.first - 1
    return f"{title}: piano roll of measures {first} to {first + 15}, gap {gap} to {gap + request.n_measures - 1}"


def _candidate(filling: Filling, candidate: Candidate, roll: list[RollNote], draw: Any) -> str:
    title, gap = f"Candidate {candidate.number}", filling.request.gap
    remarks = [filling.followed(candidate)]
    if candidate.scores:
        remarks.append(f"note F1 {number(candidate.scores['note_f1'])}")
    name = f"{filling.request.system.replace('/', '_')}_{filling.request.seed}_{candidate.number}"
    locks = locks_html(roll, gap, filling.melody.first_measure) if filling.lockable else ""
    return figure_html(
        title,
        draw(roll, label=_label(title, filling), lockable=filling.lockable),
        tokens=_whole(filling, candidate),
        file_name=name,
        note="; ".join(filter(None, remarks)),
        details=_diff(filling, candidate) + locks,
        gap=gap,
    )


def _diff(filling: Filling, candidate: Candidate) -> str:
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
