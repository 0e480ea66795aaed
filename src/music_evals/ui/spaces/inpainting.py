"""The Space that fills a gap: draw or upload a melody, let a model fill four measures, see, hear and judge what it did.

What a button does is a plain function here, which needs no browser; `build_page` wires them up.
"""

from __future__ import annotations

import functools
import io
import math
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from music_evals.annotations import MUSIB_LAYOUT, Tokens
from music_evals.metrics.catalogue import INPAINTING_METRICS
from music_evals.pipelines.gap_filling import SCORES, Candidate
from music_evals.ui import frame
from music_evals.ui.assets import html
from music_evals.ui.spaces import melody_sources
from music_evals.ui.spaces.gap_filling import (
    MAX_CANDIDATES,
    MAX_SEED,
    MAX_TEMPERATURE,
    MODEL,
    Filling,
    Places,
    Request,
    fill,
    find_places,
    python_code,
    shell_code,
)
from music_evals.ui.uploads import SCORE_TYPES
from music_evals.ui.widgets.bars import number
from music_evals.ui.widgets.note_diff import sentences, summary
from music_evals.ui.widgets.roll_editor import Melody, read_melody, roll_editor, write_melody
from music_evals.ui.widgets.roll_view import (
    RollNote,
    context_notes,
    diff_roll,
    figure_html,
    legend_html,
    midi_bytes,
    pitch_range,
    roll_svg,
    roll_view,
)

if TYPE_CHECKING:
    import gradio as gr

    from music_evals.ui.spaces.melody_sources import Piece

__all__ = [
    "build_page",
    "change_voice",
    "example_melody",
    "fill_gap",
    "open_file",
    "pairs_archive",
    "show_filling",
]

TITLE = "Fill the gap in a melody"
INTRO = """\
Four measures of a melody are missing: a model fills them, and you judge what it wrote. It is given six measures before
the gap and six after, sixteen in all, and never sees what stood in between. Draw a melody, take an example or upload
a file; where the true middle is known, the candidates are also scored against it, note by note."""
GAP = f"{MUSIB_LAYOUT.past_measures + 1} to {MUSIB_LAYOUT.past_measures + MUSIB_LAYOUT.middle_measures}"
WINDOW_HELP = (
    f"The model needs {MUSIB_LAYOUT.past_measures} + {MUSIB_LAYOUT.middle_measures} + {MUSIB_LAYOUT.future_measures} "
    "measures of 4/4, counted from the start of the file. Moving this moves the gap, and replaces what you drew."
)
DESCRIPTIONS = {
    "note_f1": "notes with the true position and pitch; the score to rank with",
    "position_score": "notes that start where true notes start",
    "pitch_accuracy": "of the shared positions, those with the true pitch",
    "rhythm_accuracy": "of the shared positions, those with the true length",
}
SYSTEM_HELP = "anticipation_rnn is a network trained on Bach chorales; the others are simple ways that it has to beat."

_GOING = " ..."  # ends the status while there is more to come

Progress = Callable[[float, str], None]


def _silent(_share: float, _stage: str) -> None:
    """Show no progress."""


def example_melody(name: str) -> str:
    """Return an example that ships with the page, as text for the editor.

    Args:
        name: "Ode to Joy" or "A walk in D minor".

    """
    return write_melody(melody_sources.example(name))


def open_file(path: str | None) -> tuple[Piece, list[str], str, int, str, str]:
    """Read an uploaded file.

    Args:
        path: MIDI, MusicXML or ABC, at most 1 MiB.
    """
    piece = melody_sources.open_piece(path)
    voice = piece.first_voice()
    note = f"{escape(piece.name)}: {piece.n_measures} measures, {len(piece.voices) - 1} voices."
    if voice == melody_sources.HIGHEST:
        note += " No voice has one note at a time: these are the highest notes."
    meters = {(meter.numerator, meter.denominator) for meter in piece.score.time_signatures}
    other = [f"{upper}/{lower}" for upper, lower in sorted(meters) if upper != lower]
    if other:
        note += f" Its meter is {', '.join(other)}; measures here last four quarters, wherever its bar lines are."
    if piece.n_measures < MUSIB_LAYOUT.n_measures:
        note += " It is shorter than sixteen measures: the rest is silence."
    return piece, list(piece.voices), voice, piece.last_start, write_melody(piece.cut(voice, 1)), note


def change_voice(piece: Piece | None, voice: str, first_measure: float, current: str) -> str:
    """Return sixteen measures of a voice as text for the editor; what is there where no file was uploaded."""
    return current if piece is None else write_melody(piece.cut(voice, int(first_measure)))


def show_filling(filling: Filling) -> str:
    """Return candidates, scores and note diffs as HTML."""
    truth = filling.melody.tokens[MUSIB_LAYOUT.middle]
    rolls = [_notes_of(filling, candidate) for candidate in filling.candidates]
    pitches = pitch_range([*context_notes(filling.melody.tokens, truth), *(note for roll in rolls for note in roll)])
    draw = functools.partial(roll_svg, pitches=pitches, first_measure=filling.melody.first_measure)
    kinds = {"outside", *(("true", "kept", "missed", "extra") if filling.request.judge else ("filled",))}
    svg = draw(context_notes(filling.melody.tokens, truth, kind="true"), label=_label("The true middle", filling))
    judged = filling.candidates if filling.request.judge else ()
    return html(
        "candidates.html",
        notes=filling.notes,
        numbers=[candidate.number for candidate in judged],
        scores=[_score_row(name, judged) for name in SCORES] if judged else [],
        undefined=any(math.isnan(value) for candidate in judged for value in candidate.scores.values()),
        truth=figure_html("The true middle", svg, tokens=filling.melody.tokens, file_name="reference")
        if filling.request.judge
        else "",
        legend=legend_html(kinds),
        figures=[
            _candidate(filling, candidate, draw(roll, label=_label(f"Candidate {candidate.number}", filling)))
            for candidate, roll in zip(filling.candidates, rolls, strict=True)
        ],
    )


def pairs_archive(filling: Filling) -> bytes:
    """Return a ZIP of MIDI files; with a true middle in the form that ``music-evals inpainting --pairs`` reads."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for candidate in filling.candidates:
            name = f"candidate_{candidate.number}"
            if filling.request.judge:
                archive.writestr(f"{name}_reference.mid", midi_bytes(filling.melody.tokens))
                archive.writestr(f"{name}_prediction.mid", midi_bytes(_whole(filling.melody, candidate.middle)))
            else:
                archive.writestr(f"{name}.mid", midi_bytes(_whole(filling.melody, candidate.middle)))
    return buffer.getvalue()


def build_page(root: str | os.PathLike[str]) -> gr.Blocks:
    """Build the Space."""
    # a small network loses an order of magnitude where several threads wait for few cores
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    places = find_places(root)
    with frame.space(TITLE, f"{INTRO} {frame.privacy()}") as page:
        editor = _melody_part(places)
        _filling_part(places, editor)
    return page


def _melody_part(places: Places) -> gr.HTML:
    """Add examples, upload and editor."""
    import gradio as gr

    gr.Markdown(f"## 1. The melody\n\nWhat is tinted, measures {GAP} of the sixteen, is the gap.")
    with gr.Row():
        buttons = [
            (gr.Button(name, size="sm", elem_id=f"example_{number}"), functools.partial(example_melody, name))
            for number, name in enumerate(melody_sources.EXAMPLES)
        ]
        if places.dataset is not None and Path(places.dataset).is_dir():
            button = gr.Button("A chorale of Bach", size="sm", elem_id="example_chorale")
            buttons.append((button, functools.partial(_chorale, places.dataset)))
    with gr.Accordion("Upload MIDI, MusicXML or ABC", open=False, elem_id="upload_part"):
        file = gr.File(label="A score of one or more voices", file_types=list(SCORE_TYPES), elem_id="upload")
        with gr.Row():
            voice = gr.Dropdown(
                [],
                label="Voice",
                info="One note at a time; of chords, the highest notes can be taken.",
                elem_id="voice",
            )
            start = gr.Slider(1, 2, 1, step=1, label="First of the sixteen measures", info=WINDOW_HELP, elem_id="start")
        note = gr.Markdown(elem_id="upload_note")
    piece = gr.State(None, time_to_live=frame.RETENTION_SEC)
    editor = roll_editor(melody_sources.example(next(iter(melody_sources.EXAMPLES))), elem_id="editor")
    gr.api(frame.friendly(example_melody), api_name="example")
    for button, function in buttons:
        button.click(frame.friendly(function), None, editor, api_visibility="private")
    file.upload(
        frame.friendly(_open_on_page),
        file,
        [piece, voice, start, editor, note],
        api_name="open_file",
        concurrency_limit=1,
    )
    window = {"inputs": [piece, voice, start, editor], "outputs": editor, "api_visibility": "private"}
    voice.input(frame.friendly(change_voice), **window)
    start.input(frame.friendly(change_voice), **window, trigger_mode="always_last")
    return editor


def _filling_part(places: Places, editor: gr.HTML) -> None:
    """Add settings, buttons and results."""
    import gradio as gr

    gr.Markdown("## 2. Fill the gap")
    with gr.Row():
        system = gr.Dropdown(
            list(places.systems),
            value=places.systems[0],
            label="System",
            info=SYSTEM_HELP,
            elem_id="system",
            min_width=240,
        )
        temperature = gr.Slider(
            0, MAX_TEMPERATURE, 0.25, step=0.05, label="Temperature", elem_id="temperature", min_width=240,
            visible=places.systems[0] == MODEL, info="0 takes the most likely note; higher is bolder.",
        )  # fmt: skip
    with gr.Row():
        seed = gr.Number(0, label="Seed", precision=0, minimum=0, maximum=MAX_SEED, elem_id="seed")
        n = gr.Slider(1, MAX_CANDIDATES, 3, step=1, label="Candidates", elem_id="n_candidates")
        judge = gr.Checkbox(
            value=True, label="What I drew or uploaded in the gap is the true middle: judge against it", elem_id="judge"
        )
    with gr.Row():
        button = gr.Button("Fill the gap", variant="primary", elem_id="fill")
        cancel = gr.Button("Cancel", elem_id="cancel")
    gr.Markdown("## 3. The candidates")
    status = gr.Markdown("Nothing is filled yet.", elem_id="status")
    view = roll_view(elem_id="candidates")
    files = frame.downloads_panel("MIDI (ZIP)")
    python, shell = frame.code_panel()
    with gr.Accordion("Receipt", open=False, elem_id="receipt_part"):
        receipt = gr.HTML(elem_id="receipt")
    system.change(
        lambda name: gr.update(visible=name == MODEL), system, temperature, api_visibility="private", queue=False
    )
    inputs, outputs = [editor, system, temperature, seed, n, judge], [status, view, receipt, python, shell, *files]
    work = functools.partial(fill_gap, places)
    work.__doc__ = fill_gap.__doc__  # tells programs what the inputs are
    run = frame.on_click(
        button,
        work,
        inputs,
        outputs,
        name="fill",
        cancel=cancel,
        cancelled=(_cancelled, status),
        show_progress_on=[status],
        api_description="Fill the gap of a melody, by a model or a baseline, and judge the candidates.",
    )
    frame.forget_when(frame.edits_of(inputs), outputs, run=run)


def _open_on_page(path: str | None) -> tuple[Any, ...]:
    """Read an uploaded file; show its first voice and its first sixteen measures.

    Args:
        path: MIDI, MusicXML or ABC, at most 1 MiB.

    """
    import gradio as gr

    piece, voices, voice, last, text, note = open_file(path)
    # a slider needs some way to go: where the piece is too short for a second place, it cannot be moved
    slider = gr.update(maximum=max(last, 2), value=1, interactive=last > 1)
    return piece, gr.update(choices=voices, value=voice), slider, text, note


def fill_gap(  # noqa: PLR0917  (a page gives its fields in their order)
    places: Places,
    melody: str,
    system: str,
    temperature: float,
    seed: float,
    n_candidates: float,
    judge: bool,  # noqa: FBT001
    *,
    progress: Progress = _silent,
) -> Iterator[tuple[Any, ...]]:
    """Fill the gap of a melody and judge the candidates; each value shows one candidate more, the last has the files.

    Args:
        melody: JSON such as {"notes": [[onset, duration, pitch], ...], "first_measure": 1}, in steps of 24 a measure.
        system: anticipation_rnn, or a baseline.
        temperature: Of the model, 0 to 2; 0 takes the most likely note.
        seed: A whole number from 0.
        n_candidates: 1 to 8.
        judge: Whether the middle of the melody is the true one, to judge against.

    """
    import gradio as gr

    progress(0.0, "Reading the melody")
    checked = read_melody(melody)
    request = Request(system, float(temperature), int(seed or 0), int(n_candidates), bool(judge))
    progress(0.05, f"Loading {system}")
    for filling in fill(places, checked, request):
        n = len(filling.candidates)
        done = f"{n} of {filling.n_candidates} candidates by {system}"
        if not filling.complete:
            progress(0.2 + 0.75 * n / filling.n_candidates, f"Candidate {n + 1} of {filling.n_candidates}")
            yield (f"{done}{_GOING}", show_filling(filling), *[gr.skip()] * 6)
    progress(0.97, "Drawing")
    json_path, csv_path = frame.write_downloads(filling.results(), filling.rows(), name="candidates")
    midi_path = Path(json_path).with_name("pairs.zip")
    midi_path.write_bytes(pairs_archive(filling))
    code = python_code(places, filling), shell_code(filling)
    receipt = frame.receipt_html(filling.receipt)
    yield (f"{done}.", show_filling(filling), receipt, *code, json_path, csv_path, str(midi_path))


def _cancelled(status: str) -> str:
    """Return the status of a run that was stopped; one that was over stays over."""
    return f"{status.removesuffix(_GOING)}. Cancelled." if status.endswith(_GOING) else status


def _chorale(dataset: str) -> str:
    return write_melody(melody_sources.chorale(dataset))


def _whole(melody: Melody, middle: Tokens) -> Tokens:
    whole = melody.tokens.copy()
    whole[MUSIB_LAYOUT.middle] = middle
    return whole


def _notes_of(filling: Filling, candidate: Candidate) -> list[RollNote]:
    context = filling.melody.tokens
    if candidate.diff is None:
        return context_notes(context, candidate.middle)
    return diff_roll(context, candidate.middle, candidate.diff)


def _label(what: str, filling: Filling) -> str:
    first = filling.melody.first_measure
    gap = first + MUSIB_LAYOUT.past_measures
    last = first + MUSIB_LAYOUT.n_measures - 1
    return f"{what}: piano roll of measures {first} to {last}, gap {gap} to {gap + MUSIB_LAYOUT.middle_measures - 1}"


def _candidate(filling: Filling, candidate: Candidate, svg: str) -> str:
    twin = next((one for one in filling.candidates if (one.middle == candidate.middle).all()), candidate)
    note = "" if twin.number == candidate.number else f"the same notes as candidate {twin.number}"
    if candidate.scores:
        note = "; ".join(filter(None, [f"note F1 {number(candidate.scores['note_f1'])}", note]))
    name = f"{filling.request.system}_{filling.request.seed}_{candidate.number}"
    return figure_html(
        f"Candidate {candidate.number}",
        svg,
        tokens=_whole(filling.melody, candidate.middle),
        file_name=name,
        note=note,
        details=_diff(candidate, filling.melody),
    )


def _diff(candidate: Candidate, melody: Melody) -> str:
    if candidate.diff is None:
        return ""
    said = sentences(candidate.diff, melody.first_measure + MUSIB_LAYOUT.past_measures)
    return html("note_diff.html", summary=summary(candidate.diff), sentences=said)


def _score_row(name: str, candidates: Sequence[Candidate]) -> dict[str, Any]:
    """Return a score of all candidates, with its range and direction."""
    info = INPAINTING_METRICS[name]
    return {
        "name": name,
        "words": DESCRIPTIONS[name],
        "scale": f"{info.low:g} to {info.high:g}, {info.direction} is better",
        "values": [number(candidate.scores[name]) for candidate in candidates],
    }
