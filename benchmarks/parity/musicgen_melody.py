"""MusicGen by text and with a melody beside audiocraft: what the model is told, and 60 steps of it."""

from __future__ import annotations

import dataclasses
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from benchmarks.parity.audiocraft import FRAME_RATE, STEPS, load, package, steps_of_theirs, write
from benchmarks.parity.side_by_side import Authors, Recorder
from tests.editing.tiny_musicgen import GREEDY, RATE, TEXT, steps_of, tune

from music_evals.audio.rendering import render_additive
from music_evals.datasets.known_edits.songs import compose, songs
from music_evals.editing.conversion import convert
from music_evals.editing.musicgen import MusicGen
from music_evals.editing.musicgen_melody import MusicGenMelody, strongest_pitch_class

AUTHORS = Authors("facebookresearch/audiocraft", "896ec7c")
_KINDS = ((MusicGen, "musicgen", "text2music"), (MusicGenMelody, "musicgen_melody", "chroma2music"))
_STEMS = (
    "theirs leaves bass and drums out first, by Demucs, whose weights are not here; with the true parts in place of "
    "its stems {:.0%} of the frames differ"
)
_LEFT_OUT = ("bass", "drums")
LONG, SHORT = 109, 10  # s: 852 frames of pitch classes, and a melody that is repeated


def measure(checkout: Path, recorder: Recorder) -> None:
    """Compare pitch classes; then, of each model, what its first layer is given, logits and tokens."""
    import torch

    with package(checkout) as theirs, torch.no_grad(), tempfile.TemporaryDirectory() as place:
        extractor = theirs.modules.chroma.ChromaExtractor(RATE, n_chroma=12, radix2_exp=14, argmax=True)
        wave = tune(LONG)
        classes = extractor(torch.from_numpy(wave)[None])[0].numpy()
        recorder.stage("strongest pitch class of each frame", strongest_pitch_class(wave, RATE), classes)
        recorder.keep(pitch_classes=classes.argmax(axis=1).astype(np.int8))
        mixtures, stems = _stems()
        share = (mixtures != stems).any(axis=1).mean()
        recorder.stage("strongest pitch class of 12 songs", mixtures, stems, note=_STEMS.format(share))
        wave = tune(SHORT)
        melody = {
            "melody_wavs": torch.from_numpy(wave)[None, None], "melody_sample_rate": RATE,
        }  # fmt: skip
        heard = {"input_features": torch.from_numpy(strongest_pitch_class(wave, RATE))[None]}
        for kind, window, conditioner in _KINDS:
            folder = Path(place, window)
            folder.mkdir()
            weights = write(theirs, folder, window, conditioner)
            system = load(theirs, folder)
            convert(folder)
            model = kind.from_pretrained(folder, base=folder / "base")._model
            make = partial(model.generate, TEXT, STEPS / FRAME_RATE, 0, GREEDY)
            if kind is MusicGenMelody:
                ours = steps_of(model, partial(make, **heard))
                published = steps_of_theirs(system, partial(system.generate_with_chroma, [TEXT], **melody))
                recorder.stage("prefix of melody and text", ours.given[0], published.given[0])
                recorder.stage("prefix of nothing", ours.given[1], published.given[1])
            else:
                ours = steps_of(model, make)
                published = steps_of_theirs(system, partial(system.generate, [TEXT]))
            recorder.stage(f"{window}: logits of 60 steps", ours.logits[:STEPS], published.logits[:STEPS])
            recorder.stage(f"{window}: tokens", ours.tokens, published.tokens)
            recorder.keep(**{f"{window}.{name}": values for name, values in (weights | published.golden()).items()})


def _stems() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return the strongest pitch classes of 30 s of songs of our own, of all their parts and without bass and drums."""
    classes: tuple[list[Any], list[Any]] = ([], [])
    for name in songs():
        piece = compose(name)
        stems = dataclasses.replace(piece, parts=tuple(part for part in piece.parts if part.role not in _LEFT_OUT))
        for found, heard in zip(classes, (piece, stems), strict=True):
            samples = render_additive(heard.score(), sample_rate=RATE)[: 30 * RATE]
            found.append(strongest_pitch_class(np.pad(samples, (0, 30 * RATE - len(samples))), RATE))
    return np.concatenate(classes[0]), np.concatenate(classes[1])
