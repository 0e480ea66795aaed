"""How to do in code what the inpainting page did: Python that gives the same candidates, a command that scores them."""

from __future__ import annotations

import os

from music_evals.ui.spaces.gap_filling import NO_SKETCH, Filling, options_of
from music_evals.ui.spaces.gap_models import DATASET, DATASET_CONFIG, FITTED, Model, Places, abilities, model_of, models
from music_evals.ui.widgets.roll_editor import write_melody

__all__ = ["python_code", "shell_code"]

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


def python_code(places: Places, filling: Filling) -> str:
    """Return a script that gives the same candidates and scores."""
    request = filling.request
    model = model_of(models(places), request.system)
    if model is not None:
        options = options_of(model, request.decoding, request.temperature)
        place = "".join(f", {name}={value!r}" for name, value in options.items()).replace("'", '"')
        imported, system = "load_model", f'system = load_model("{_place(model, filling)}"{place})'
    elif request.system in FITTED:
        imported = "baseline_system"
        data = DATASET if os.path.isdir(str(places.dataset)) else places.dataset  # noqa: PTH112  (a Hub id is no path)
        system = (
            "from music_evals.benchmark.tasks.inpainting.items import load_items\n\n"
            f'train = load_items("{data}", "{DATASET_CONFIG}", "train").contexts\n'
            f'system = baseline_system("{request.system}", train)'
        )
    else:
        imported, system = "baseline_system", f'system = baseline_system("{request.system}", None)'
    sketched = request.sketch != NO_SKETCH
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


def shell_code(filling: Filling) -> str:
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


def _sketch(kind: str, model: Model | None) -> str:
    module, _, name = abilities(model).sketch.partition(":")
    return _SKETCH.format(module=module, name=name, kind=kind, field="rhythms" if kind == "rhythm" else "pitches")


def _place(model: Model, filling: Filling) -> str:
    """Return what a reader's own machine calls a model: a Hub id with its revision, or a folder of a clone."""
    if os.path.isdir(model.place):  # noqa: PTH112  (a Hub id is no path)
        return f"models/{model.name}" if "/" in model.name else model.name
    revision = filling.receipt.get("revision")
    return f"{model.place}@{revision}" if revision else model.place
