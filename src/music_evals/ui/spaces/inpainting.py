"""The Space that fills a gap: draw or upload a melody, let a model fill four measures, see, hear and judge what it did.

What a button does is a plain function here, which needs no browser; `build_page` wires them up.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from music_evals.annotations import MUSIB_LAYOUT
from music_evals.errors import NoDataError
from music_evals.options import label_of
from music_evals.protocols.settings import check_type
from music_evals.ui import frame
from music_evals.ui.spaces import gap_filling as gaps
from music_evals.ui.spaces import melody_sources
from music_evals.ui.spaces.gap_views import pairs_archive, python_code, shell_code, show_filling
from music_evals.ui.uploads import SCORE_TYPES
from music_evals.ui.widgets.roll_editor import (
    NO_LOCKS,
    kept_notes,
    read_locks,
    read_melody,
    roll_editor,
    roll_task,
    write_melody,
)
from music_evals.ui.widgets.roll_view import roll_view

if TYPE_CHECKING:
    import gradio as gr

    from music_evals.ui.spaces.melody_sources import Piece

TITLE = "Fill the gap in a melody"
INTRO = """\
Measures of a melody are missing: a model fills them, and you judge what it wrote. It is shown what stands before and
after the gap, sixteen measures in all, and never what stood in between. Draw a melody, take an example or upload a
file; where the true middle is known, the candidates are also scored against it, note by note. Some models can be
steered: notes that you lock stay while the rest is written anew, or you draw a rhythm or a contour and the model finds
the rest."""
GAP = f"{MUSIB_LAYOUT.past_measures + 1} to {MUSIB_LAYOUT.past_measures + MUSIB_LAYOUT.middle_measures}"
WINDOW_HELP = (
    f"The page shows {MUSIB_LAYOUT.n_measures} measures of 4/4, counted from the start of the file. Moving this moves "
    "the gap, and replaces what you drew."
)

_GOING = " ..."  # ends the status while there is more to come


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
    voice = next(label for label in piece.voices if piece._is_one_voice(label))  # the highest notes are one
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
    if piece is None and voice:  # the state of a page goes with the uploads
        raise NoDataError("the upload is gone; upload it again")
    return current if piece is None else write_melody(piece.cut(voice, int(first_measure)))


def build_page(root: str | os.PathLike[str]) -> gr.Blocks:
    """Build the Space."""
    # a small network loses an order of magnitude where several threads wait for few cores
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    places = gaps.find_places(root)
    with frame.space(TITLE, f"{INTRO} {frame.privacy()}") as page:
        import gradio as gr

        gr.Markdown(f"## 1. The melody\n\nWhat is tinted, measures {GAP} of the sixteen to begin with, is the gap.")
        with gr.Row():
            buttons: list[tuple[Any, Callable[[], str]]] = [
                (gr.Button(name, size="sm", elem_id=f"example_{number}"), functools.partial(example_melody, name))
                for number, name in enumerate(melody_sources.EXAMPLES)
            ]
            if places.dataset is not None and Path(places.dataset).is_dir():
                button = gr.Button("A chorale of Bach", size="sm", elem_id="example_chorale")
                buttons.append((button, lambda: write_melody(melody_sources.chorale(str(places.dataset)))))
        with gr.Accordion("Upload MIDI, MusicXML or ABC", open=False, elem_id="upload_part"):
            file = gr.File(label="A score of one or more voices", file_types=list(SCORE_TYPES), elem_id="upload")
            with gr.Row():
                voice = gr.Dropdown(
                    [],
                    label="Voice",
                    info="One note at a time; of chords, the highest notes can be taken.",
                    interactive=False,  # until there is a file
                    elem_id="voice",
                )
                label = "First of the sixteen measures"
                start = gr.Slider(1, 2, 1, step=1, label=label, info=WINDOW_HELP, interactive=False, elem_id="start")
            note = gr.Markdown(elem_id="upload_note")
        piece = gr.State(None, time_to_live=frame.RETENTION_SEC)
        editor = roll_editor(melody_sources.example(next(iter(melody_sources.EXAMPLES))), elem_id="editor")
        gr.api(frame.friendly(example_melody), api_name="example")
        for button, function in buttons:
            button.click(frame.friendly(function), None, editor, api_visibility="private")
        opened = [piece, voice, start, editor, note]
        file.upload(frame.friendly(_open_on_page), file, opened, api_name="open_file", concurrency_limit=1)
        window = {"inputs": [piece, voice, start, editor], "outputs": editor, "trigger_mode": "always_last"}
        for part in (voice, start):
            part.input(frame.friendly(change_voice), **window, api_visibility="private")
        sources = [*(button.click for button, _ in buttons), file.upload, voice.input, start.input]
        _filling_part(page, places, editor, sources)
    return page


def _filling_part(page: gr.Blocks, places: gaps.Places, editor: gr.HTML, sources: list[Any]) -> None:
    """Add settings, buttons and results."""
    import gradio as gr

    gr.Markdown("## 2. Fill the gap")
    controls = build_controls(places)
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
    wire_controls(page, places, controls, editor)
    outputs = [status, view, receipt, python, shell, *files]
    work = functools.partial(fill_gap, places)
    work.__doc__ = fill_gap.__doc__  # tells programs what the inputs are
    run = frame.on_click(
        button, work, [editor, *controls], outputs, name="fill", cancel=cancel, cancelled=(_cancelled, status),
        show_progress_on=[status],
        api_description="Fill the gap of a melody, by a model or a baseline, and judge the candidates.",
    )  # fmt: skip
    # locks do not empty the page: they are what is chosen from the candidates that stand there
    inputs = [editor, *(control for control in controls if control is not controls.locks)]
    frame.forget_when(frame.edits_of(inputs), outputs, run=run)
    frame.forget_when(sources, [controls.locks])


def _open_on_page(path: str | None) -> tuple[Any, ...]:
    """Read an uploaded file; show its first voice and its first sixteen measures.

    Args:
        path: MIDI, MusicXML or ABC, at most 1 MiB.
    """
    import gradio as gr

    piece, voices, voice, last, text, note = open_file(path)
    # a slider needs some way to go: where the piece is too short for a second place, it cannot be moved
    slider = gr.update(maximum=max(last, 2), value=1, interactive=last > 1)
    return piece, gr.update(choices=voices, value=voice, interactive=True), slider, text, note


def fill_gap(  # noqa: PLR0917  (a page gives its fields in their order)
    places: gaps.Places,
    melody: str,
    system: str,
    temperature: float,
    seed: float,
    n_candidates: float,
    judge: bool,  # noqa: FBT001
    decoding: str = gaps.OWN,
    first: float = gaps.FIRST,
    n_measures: float = gaps.MEASURES,
    sketch: str = gaps.NO_SKETCH,
    keep: str = NO_LOCKS,
    *,
    progress: frame.Progress = frame.no_progress,
) -> Iterator[tuple[Any, ...]]:
    """Fill the gap of a melody and judge the candidates; each value shows one candidate more, the last has the files.

    Args:
        melody: JSON such as {"notes": [[onset, duration, pitch], ...], "first_measure": 1}, in steps of 24 a measure.
        system: A model such as sketchnet, or a baseline such as copy_past.
        temperature: Of a model that draws, 0 to 2; 0 takes the most likely note.
        seed: A whole number from 0.
        n_candidates: 1 to 8.
        judge: Whether what stands in the gap is the true middle, to judge against.
        decoding: "own" is that of the model's configuration; or "sample".
        first: The measure of the sixteen with which the gap begins, from 1.
        n_measures: How many measures it has.
        sketch: "none", or what the notes in the gap are that steer the model: "rhythm" or "contour".
        keep: Notes that stay, as JSON such as [[144, 6, 60]]: onset, duration, pitch.
    """
    import gradio as gr

    numbers = {"temperature": temperature, "seed": seed or 0, "candidates": n_candidates, "first": first}
    for name, value in {**numbers, "measures": n_measures}.items():
        check_type(name, value, float)
    progress(0.0, "Reading the melody")
    checked = read_melody(melody)
    request = gaps.Request(
        system=system,
        decoding=decoding,
        temperature=float(temperature),
        seed=int(seed or 0),
        n_candidates=int(n_candidates),
        evaluate=bool(judge),
        first=int(first),
        n_measures=int(n_measures),
        sketch=sketch,
        keep=read_locks(keep),
    )
    progress(0.05, f"Loading {system}")
    for filling in gaps.fill(places, checked, request):
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


# --- controls

N: Final = MUSIB_LAYOUT.n_measures
LONGEST: Final = (
    max(ability.gap.hidden_steps for ability in gaps.ABILITIES.values() if ability.gap)
    // MUSIB_LAYOUT.steps_per_measure
)
"""Measures that any model can fill at most."""

SKETCH_CHOICES: Final = (
    ("no sketch", gaps.NO_SKETCH),
    ("a rhythm: the model finds the pitches", "rhythm"),
    ("a contour, pitches in their order: the model finds the rhythm", "contour"),
)
SKETCH_HELP: Final = (
    "Then what you draw in the gap stands in every candidate, and the model finds the rest. A measure that you leave "
    "empty is its own."
)
SYSTEM_HELP: Final = (
    "The first ones are networks; the others, from silence on, are simple ways that a network has to beat."
)
TEMPERATURE_HELP: Final = "0 takes the most likely note; higher is bolder."


class Controls(NamedTuple):
    """The components, in the order in which `fill_gap` takes their values, but for the editor."""

    system: Any
    temperature: Any
    seed: Any
    n: Any
    evaluate: Any
    decoding: Any
    first: Any
    n_measures: Any
    sketch: Any
    locks: Any


def settings(places: gaps.Places, system: str) -> dict[str, dict[str, Any]]:
    """Return what the choice of a system changes: component -> its properties."""
    known = gaps.models(places)
    model = gaps.model_of(known, system)
    fixed = gaps.why_not("gap", model, system, known)
    no_sketch = gaps.why_not("sketch", model, system, known)
    lengths = fixed or f"{system} fills 1 to {gaps.longest_gap(model)} measures at once."
    components: dict[str, dict[str, Any]] = {
        "first": {"value": gaps.FIRST, "interactive": not fixed, "info": fixed or "Counted in the sixteen, from 1."},
        "n_measures": {"value": gaps.MEASURES, "interactive": not fixed, "info": lengths},
        "sketch": {"value": gaps.NO_SKETCH, "interactive": not no_sketch, "info": no_sketch or SKETCH_HELP},
        "locks": {"why": gaps.why_not("locks", model, system, known)},
        "decoding": {"visible": model is not None, "value": gaps.OWN},
    }
    if model is not None:
        own = f"as it is set: {model.decoding}"
        components["decoding"] |= {
            "choices": [(own, gaps.OWN), ("drawn step by step: sample", "sample")],
            "interactive": model.decoding != "sample",
            "info": f"{model.decoding} draws: each candidate is another one."
            if model.draws()
            else f"{model.decoding} draws nothing: there is one candidate. For more of them, take sample.",
        }
        components["temperature"] = {"value": model.temperature}
    return components | drawing(model, gaps.OWN, components.get("temperature", {}))


def drawing(model: gaps.Model | None, decoding: str, temperature: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what a decoding changes; baselines say by themselves how many candidates they give."""
    draws = model is None or model.draws(decoding)
    info = "" if draws else "There is one: nothing is drawn."
    return {
        "temperature": {**temperature, "visible": model is not None and draws, "info": TEMPERATURE_HELP},
        "n": {"interactive": draws, "info": info},
    }


def task(places: gaps.Places, system: str, first: float, n_measures: float, sketch: str) -> dict[str, Any]:
    """Return the property ``task`` of the editor."""
    known = gaps.models(places)
    return roll_task(
        gaps.gap_of(int(first), int(n_measures)),
        sketch=sketch,
        no_locks=gaps.why_not("locks", gaps.model_of(known, system), system, known),
    )


def build_controls(places: gaps.Places) -> Controls:
    """Add the controls, set for the first system."""
    import gradio as gr

    from music_evals.benchmark.tasks.inpainting.task import Settings

    # models on the Hub are listed when a visitor comes: building the page needs no network
    here = gaps.Places(places.models, places.dataset)
    names = gaps.systems(here, here.models)
    shown = settings(here, names[0])
    with gr.Row():
        system = gr.Dropdown(
            [*(gaps.ORDER if places.owner else ()), *names],
            value=names[0],
            label="System",
            info=SYSTEM_HELP,
            elem_id="system",
            min_width=240,
        )
        decoding = gr.Radio(
            **{"choices": [("as it is set", gaps.OWN), ("sample", "sample")], **shown["decoding"]},
            label=label_of(Settings, "decoding"), elem_id="decoding", min_width=240,
        )  # fmt: skip
        temperature = gr.Slider(
            0, gaps.MAX_TEMPERATURE, step=0.05, label=label_of(Settings, "temperature"), elem_id="temperature",
            **{"min_width": 240, "value": 1.0, **shown["temperature"]},
        )  # fmt: skip
    with gr.Row():
        first = gr.Slider(1, N, step=1, label="The gap begins with measure", elem_id="gap_first", **shown["first"])
        n_measures = gr.Slider(
            1, LONGEST, step=1, label="Measures of the gap", elem_id="gap_measures", **shown["n_measures"]
        )
    sketch = gr.Radio(list(SKETCH_CHOICES), label="What I draw in the gap is", elem_id="sketch", **shown["sketch"])
    locks = kept_notes(**shown["locks"], elem_id="kept")
    with gr.Row():
        seed = gr.Number(0, label="Seed", precision=0, minimum=0, maximum=gaps.MAX_SEED, elem_id="seed")
        n = gr.Slider(1, gaps.MAX_CANDIDATES, 3, step=1, label="Candidates", elem_id="n_candidates", **shown["n"])
        evaluate = gr.Checkbox(
            value=True, label="What I drew or uploaded in the gap is the true middle: judge against it", elem_id="judge"
        )
    return Controls(system, temperature, seed, n, evaluate, decoding, first, n_measures, sketch, locks)


def wire_controls(page: gr.Blocks, places: gaps.Places, controls: Controls, editor: gr.HTML) -> None:
    """Let the controls follow the system, and the editor the gap; load the first model when a visitor comes."""
    import gradio as gr

    quiet: dict[str, Any] = {"api_visibility": "private", "queue": False, "show_progress": "hidden"}
    names = ("temperature", "n", "decoding", "first", "n_measures", "sketch", "locks")
    changed = [getattr(controls, name) for name in names]

    def choose(system: str) -> list[Any]:
        new = settings(places, system)
        now = task(places, system, gaps.FIRST, gaps.MEASURES, gaps.NO_SKETCH)
        return [*(gr.update(**new[name]) for name in names), gr.update(task=now)]

    def decode(system: str, decoding: str) -> list[Any]:
        new = drawing(gaps.model_of(gaps.models(places), system), decoding, {})
        return [gr.update(**new["temperature"]), gr.update(**new["n"])]

    def place(system: str, first: float, n_measures: float, sketch: str) -> list[Any]:
        # what is right as it is stays untouched: the visitor may have moved it on by the time that this arrives
        fewer = min(int(n_measures), gaps.longest_gap(gaps.model_of(gaps.models(places), system)))
        earlier = min(int(first), N - fewer + 1)
        return [
            gr.skip() if earlier == first else earlier,
            gr.skip() if fewer == n_measures else fewer,
            gr.update(task=task(places, system, earlier, fewer, sketch)),
        ]

    def arrive() -> Any:
        offered = list(gaps.systems(places, gaps.models(places)))
        return gr.update(choices=offered, value=offered[0])

    def warm() -> None:
        if known := gaps.models(places):
            gaps.load_system(places, known[0])

    controls.system.change(choose, controls.system, [*changed, editor], **quiet)
    sampling = [controls.system, controls.decoding], [controls.temperature, controls.n]
    frame.follow([controls.decoding.input], decode, *sampling, **quiet)
    placed = [controls.first, controls.n_measures, controls.sketch]
    moved = [part.input for part in placed]  # one call for all: of two, the first could be answered last
    frame.follow(moved, place, [controls.system, *placed], [controls.first, controls.n_measures, editor], **quiet)
    if places.owner:
        page.load(arrive, None, controls.system, **quiet).then(warm, None, None, **quiet)
    else:
        page.load(warm, None, None, **quiet)
