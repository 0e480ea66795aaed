"""What visitors of the inpainting page can set: what a model cannot do is disabled, with the reason beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from music_evals.annotations import MUSIB_LAYOUT
from music_evals.options import label_of
from music_evals.ui import frame
from music_evals.ui.spaces.gap_filling import (
    FIRST,
    MAX_CANDIDATES,
    MAX_SEED,
    MAX_TEMPERATURE,
    MEASURES,
    NO_SKETCH,
    gap_of,
    load_system,
)
from music_evals.ui.spaces.gap_models import (
    ABILITIES,
    ORDER,
    OWN,
    Model,
    Places,
    longest_gap,
    model_of,
    models,
    systems,
    why_no_locks,
    why_no_sketch,
    why_this_gap,
)
from music_evals.ui.widgets.kept_notes import kept_notes
from music_evals.ui.widgets.roll_editor import roll_task

if TYPE_CHECKING:
    import gradio as gr

__all__ = ["Controls", "build_controls", "drawing", "settings", "task", "wire_controls"]

N: Final = MUSIB_LAYOUT.n_measures
LONGEST: Final = (
    max(ability.gap.hidden_steps for ability in ABILITIES.values() if ability.gap) // MUSIB_LAYOUT.steps_per_measure
)
"""Measures that any model can fill at most."""

SKETCH_CHOICES: Final = (
    ("no sketch", NO_SKETCH),
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
    """The components, in the order in which `fill` takes their values, but for the editor."""

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


def settings(places: Places, system: str) -> dict[str, dict[str, Any]]:
    """Return what the choice of a system changes: component -> its properties."""
    known = models(places)
    model = model_of(known, system)
    fixed = why_this_gap(model, system, known)
    no_sketch = why_no_sketch(model, system, known)
    lengths = fixed or f"{system} fills 1 to {longest_gap(model)} measures at once."
    components: dict[str, dict[str, Any]] = {
        "first": {"value": FIRST, "interactive": not fixed, "info": fixed or "Counted in the sixteen, from 1."},
        "n_measures": {"value": MEASURES, "interactive": not fixed, "info": lengths},
        "sketch": {"value": NO_SKETCH, "interactive": not no_sketch, "info": no_sketch or SKETCH_HELP},
        "locks": {"why": why_no_locks(model, system, known)},
        "decoding": {"visible": model is not None, "value": OWN},
    }
    if model is not None:
        own = f"as it is set: {model.decoding}"
        components["decoding"] |= {
            "choices": [(own, OWN), ("drawn step by step: sample", "sample")],
            "interactive": model.decoding != "sample",
            "info": f"{model.decoding} draws: each candidate is another one."
            if model.draws()
            else f"{model.decoding} draws nothing: there is one candidate. For more of them, take sample.",
        }
        components["temperature"] = {"value": model.temperature}
    return components | drawing(model, OWN, components.get("temperature", {}))


def drawing(model: Model | None, decoding: str, temperature: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what a decoding changes; baselines say by themselves how many candidates they give."""
    draws = model is None or model.draws(decoding)
    info = "" if draws else "There is one: nothing is drawn."
    return {
        "temperature": {**temperature, "visible": model is not None and draws, "info": TEMPERATURE_HELP},
        "n": {"interactive": draws, "info": info},
    }


def task(places: Places, system: str, first: float, n_measures: float, sketch: str) -> dict[str, Any]:
    """Return the property ``task`` of the editor."""
    known = models(places)
    return roll_task(
        gap_of(int(first), int(n_measures)),
        sketch=sketch,
        no_locks=why_no_locks(model_of(known, system), system, known),
    )


def build_controls(places: Places) -> Controls:
    """Add the controls, set for the first system."""
    import gradio as gr

    from music_evals.benchmark.tasks.inpainting.task import Settings

    # models on the Hub are listed when a visitor comes: building the page needs no network
    here = Places(places.models, places.dataset)
    names = systems(here, here.models)
    shown = settings(here, names[0])
    with gr.Row():
        system = gr.Dropdown(
            [*(ORDER if places.owner else ()), *names],
            value=names[0],
            label="System",
            info=SYSTEM_HELP,
            elem_id="system",
            min_width=240,
        )
        decoding = gr.Radio(
            **{"choices": [("as it is set", OWN), ("sample", "sample")], **shown["decoding"]},
            label=label_of(Settings, "decoding"), elem_id="decoding", min_width=240,
        )  # fmt: skip
        temperature = gr.Slider(
            0, MAX_TEMPERATURE, step=0.05, label=label_of(Settings, "temperature"), elem_id="temperature",
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
        seed = gr.Number(0, label="Seed", precision=0, minimum=0, maximum=MAX_SEED, elem_id="seed")
        n = gr.Slider(1, MAX_CANDIDATES, 3, step=1, label="Candidates", elem_id="n_candidates", **shown["n"])
        evaluate = gr.Checkbox(
            value=True, label="What I drew or uploaded in the gap is the true middle: judge against it", elem_id="judge"
        )
    return Controls(system, temperature, seed, n, evaluate, decoding, first, n_measures, sketch, locks)


def wire_controls(page: gr.Blocks, places: Places, controls: Controls, editor: gr.HTML) -> None:
    """Let the controls follow the system, and the editor the gap; load the first model when a visitor comes."""
    import gradio as gr

    quiet: dict[str, Any] = {"api_visibility": "private", "queue": False, "show_progress": "hidden"}
    names = ("temperature", "n", "decoding", "first", "n_measures", "sketch", "locks")
    changed = [getattr(controls, name) for name in names]

    def choose(system: str) -> list[Any]:
        new = settings(places, system)
        now = task(places, system, FIRST, MEASURES, NO_SKETCH)
        return [*(gr.update(**new[name]) for name in names), gr.update(task=now)]

    def decode(system: str, decoding: str) -> list[Any]:
        new = drawing(model_of(models(places), system), decoding, {})
        return [gr.update(**new["temperature"]), gr.update(**new["n"])]

    def place(system: str, first: float, n_measures: float, sketch: str) -> list[Any]:
        # what is right as it is stays untouched: the visitor may have moved it on by the time that this arrives
        fewer = min(int(n_measures), longest_gap(model_of(models(places), system)))
        earlier = min(int(first), N - fewer + 1)
        return [
            gr.skip() if earlier == first else earlier,
            gr.skip() if fewer == n_measures else fewer,
            gr.update(task=task(places, system, earlier, fewer, sketch)),
        ]

    def arrive() -> Any:
        offered = systems(places, models(places))
        return gr.update(choices=list(offered), value=offered[0])

    def warm() -> None:
        if known := models(places):
            load_system(places, known[0])

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
