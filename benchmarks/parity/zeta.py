"""ZETA beside the code of its authors: the inversion and the edit of one latent by one tiny AudioLDM 2.

Theirs is the wrapper of AudioLDM 2 and both processes of their repository with the defaults of their program, for 50
and for 200 steps, half of which are run anew. Both sides noise the latent with the same draws.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from benchmarks.parity.side_by_side import Authors, Recorder, importable
from tests.editing.tiny_audioldm2 import CHANGE, SEED, named_pipeline

from music_evals.editing.audioldm2 import AudioLDM2
from music_evals.editing.zeta import Inversion, Zeta, forward, invert

__all__ = ["AUTHORS", "measure", "their_code", "wrapper"]

AUTHORS = Authors("HilaManor/AudioEditingCode", "f324c19")
STEPS = (50, 200)
EVERY = 10  # step of the shorter inversion is kept for the tests
ENDS = "the default keeps the last noise, which they set to 0 (`zero_last=true`): the source is rebuilt exactly"


def measure(checkout: Path, recorder: Recorder) -> None:
    """Compare texts, noises, latents and edits."""
    model = AudioLDM2(named_pipeline())  # loaded before anything is stood in for
    latent = torch.randn(1, 4, 8, 16, generator=torch.Generator().manual_seed(SEED))
    recorder.keep(latent=latent)
    with their_code(checkout) as (models, process), torch.no_grad():
        theirs = wrapper(models)
        texts = {"source prompt": CHANGE.source_prompt, "target prompt": CHANGE.target_caption(), "empty text": ""}
        for name, text in texts.items():
            generated, words, _ = theirs.encode_text([text])
            ours = model.condition(text)
            recorder.stage(f"words of the {name}", ours.words, words)
            recorder.stage(f"generated vectors of the {name}", ours.generated, generated)
        for steps in STEPS:
            _run(recorder, theirs, process, Zeta(model, steps=steps, start=steps // 2), latent)


@contextlib.contextmanager
def their_code(checkout: Path) -> Iterator[tuple[Any, Any]]:
    """Import their models and processes; torchvision is for several descriptions at once, torchsde for other models."""
    packages = {name: types.ModuleType(name) for name in ("torchvision", "torchsde")}
    packages["torchvision"].transforms = None  # type: ignore[attr-defined]
    with importable(checkout / "code"), mock.patch.dict(sys.modules, packages), contextlib.redirect_stdout(sys.stderr):
        yield importlib.import_module("models"), importlib.import_module("ddm_inversion.inversion_utils")


def wrapper(models: Any) -> Any:
    """Return their wrapper around the tiny pipeline, where its own start would fetch one."""
    theirs = object.__new__(models.AudioLDM2Wrapper)
    models.PipelineWrapper.__init__(theirs, "", "cpu")
    theirs.model = AudioLDM2(named_pipeline()).pipeline
    features = theirs.model.text_encoder.get_text_features
    theirs.model.text_encoder.get_text_features = lambda *given, **options: features(*given, **options).pooler_output
    return theirs


def _run(recorder: Recorder, theirs: Any, process: Any, system: Zeta, latent: Any) -> None:
    """Compare the inversion of a latent and its edit."""
    model, schedule = system._model, system._schedule
    steps, start = (int(system.info.parameters[name]) for name in ("steps", "start"))
    draws: list[Any] = []
    generator = torch.Generator().manual_seed(SEED)
    empty, source, target = (model.condition(text) for text in ("", CHANGE.source_prompt, CHANGE.target_caption()))
    told, asked = system._guided(empty, source, 3.0), system._guided(empty, target, 12.0)
    draw = torch.randn

    def drawn(*given: Any, **options: Any) -> Any:
        draws.append(draw(*given, **options).to(latent))
        return draws[-1]

    with mock.patch.object(torch, "randn", drawn):
        ours = invert(latent, told, schedule, generator, zero_last=True)
    edited = forward(ours, asked, schedule, start)

    theirs.model.scheduler.set_timesteps(steps)
    # they noise the cleanest step first
    with mock.patch.object(torch, "randn_like", side_effect=lambda _: draws.pop()):
        _, noises, latents, _ = process.inversion_forward_process(
            theirs,
            latent,
            etas=1.0,
            prompts=[CHANGE.source_prompt],
            cfg_scales=[3],
            num_inference_steps=steps,
            numerical_fix=True,
        )
    changed, _ = process.inversion_reverse_process(
        theirs,
        xT=latents,
        tstart=torch.tensor([start], dtype=torch.int),
        etas=1.0,
        prompts=[CHANGE.target_caption()],
        neg_prompts=[""],
        cfg_scales=[12],
        zs=noises[:start],
    )
    kept = slice(None, None, EVERY) if steps == min(STEPS) else slice(0)
    found = _from_the_cleanest(ours)
    for name, one, other in zip(("noised latents", "noises"), found, (latents, noises), strict=True):
        recorder.stage(f"{name}, {steps} steps", one, other)
        if other[kept].numel():
            recorder.keep(**{f"{name}, {steps} steps": other[kept]})
    recorder.stage(f"edited latent, {steps} steps", edited, changed, kept=True)
    default = invert(latent, told, schedule, torch.Generator().manual_seed(SEED))
    recorder.stage(
        f"edited latent, {steps} steps, by default", forward(default, asked, schedule, start), changed, note=ENDS
    )


def _from_the_cleanest(inversion: Inversion) -> tuple[Any, Any]:
    """Return latents and noises in their order."""
    return torch.cat(list(inversion.latents)[::-1]), torch.cat(list(inversion.noises)[::-1])
