"""MusicMagus beside the code of its authors: one tiny AudioLDM 2 in both, from the log-mel to the edited latent.

Theirs is the pipeline of their repository, run as it is but for what it needs and is not here: soundfile reads in place
of torchaudio, the CPU stands in for the GPU that they name, and the loop of the language model is that of diffusers, as
theirs calls a method that transformers has no more. Both get the same sentences, where they ask a language model.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import tempfile
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import soundfile
import torch
from benchmarks.parity.audioldm2 import compare_log_mel, noisy_chord, surroundings
from benchmarks.parity.side_by_side import Authors, Recorder, importable
from tests.editing.tiny_audioldm2 import CHANGE, NEGATIVE, SEED, SENTENCES, edit_from, named_pipeline

from music_evals.annotations import EditRequest
from music_evals.editing import audioldm2
from music_evals.editing.audioldm2 import SAMPLE_RATE, AudioLDM2
from music_evals.editing.musicmagus import VARIANTS, MusicMagus, regularised
from music_evals.editing.system import Seeds

__all__ = ["AUTHORS", "measure"]

AUTHORS = Authors("ldzhangyx/MusicMagus", "ef69ef6")
PROMPT = CHANGE.source_prompt
STEPS = 5
SECONDS = 0.625  # theirs makes 64 frames of it, and so do we
OURS = "the default, `corrected`, differs on purpose: "
NOTES = {
    "generated vectors of the negative prompt": "the negative prompt is not padded to the length of the prompt",
    "regularised noise": "several sizes, the mean of the channels, no roll by 0 places",
    "word direction": "padding does not count, sentences are not cut",
    "inverted noise": "the mode of the posterior, its regulariser",
    "edited latent, from one noise": "one latent is pulled and goes on; direction and negative prompt as above",
}
"""Stage -> what ours does otherwise by default."""


def measure(checkout: Path, recorder: Recorder) -> None:
    """Compare texts, regulariser, direction, inversion, gradients of the maps and an edit."""
    model, recording = AudioLDM2(named_pipeline()), noisy_chord(SECONDS)  # loaded before anything is stood in for
    with (
        importable(checkout),
        surroundings(),
        contextlib.redirect_stdout(sys.stderr),
        tempfile.TemporaryDirectory() as folder,
        torch.no_grad(),
    ):
        path = Path(folder) / "source.wav"
        soundfile.write(path, recording, SAMPLE_RATE, subtype="FLOAT")
        module = importlib.import_module("audioldm2.p2p_pipeline")
        calculator = importlib.import_module("audioldm2.embedding_calculator").EmbeddingCalculator
        spectrum = module.TacotronSTFT(1024, 160, 1024, 64, SAMPLE_RATE, 0, 8000)
        mel = module.wav_to_fbank(str(path), target_length=64, fn_STFT=spectrum)[0].numpy()
        recorder.keep(mel=mel)
        compare_log_mel(recorder, recording, mel)
        theirs = _pipeline(module)
        _texts(recorder, theirs, model)
        _regulariser(recorder, module, path)
        concepts = _concepts(theirs, calculator)
        _direction(recorder, theirs, concepts, model)
        request = EditRequest(source_id="song", instruction=CHANGE, audio=recording[None], sample_rate=SAMPLE_RATE)
        with mock.patch.object(audioldm2, "log_mel", return_value=mel):
            inverted = _inversion(recorder, theirs, path, model, request)
        _edit(recorder, theirs, concepts, model, inverted)


def _pipeline(module: Any) -> Any:
    """Return their pipeline with the tiny parts."""
    from diffusers import AudioLDM2Pipeline, DDIMInverseScheduler, DDIMScheduler

    class Pipeline(module.AudioLDM2Pipeline):  # type: ignore[misc]
        generate_language_model = AudioLDM2Pipeline.generate_language_model

        def encode_prompt(self, prompt: Any, device: Any, *given: Any, **options: Any) -> Any:
            return super().encode_prompt(prompt, "cpu" if device == "cuda" else device, *given, **options)

    class Loss(module.Pix2PixZeroMSELoss):  # type: ignore[misc]
        def __init__(self, **options: Any) -> None:
            super().__init__(**{**options, "device": "cpu"})

    module.Pix2PixZeroMSELoss = Loss
    parts = AudioLDM2(named_pipeline()).pipeline.components
    features = parts["text_encoder"].get_text_features
    parts["text_encoder"].get_text_features = lambda *given, **options: features(*given, **options).pooler_output
    theirs = Pipeline(**parts)
    theirs.scheduler = DDIMScheduler.from_config(theirs.scheduler.config)
    theirs.inverse_scheduler = DDIMInverseScheduler.from_config(theirs.scheduler.config)
    theirs.set_progress_bar_config(disable=True)
    return theirs


def _texts(recorder: Recorder, theirs: Any, model: AudioLDM2) -> None:
    words, _, generated = theirs.encode_prompt(PROMPT, "cpu", 1, True, NEGATIVE)  # noqa: FBT003
    both = {"negative prompt": model.condition(NEGATIVE, PROMPT), "prompt": model.condition(PROMPT)}
    for place, (name, ours) in enumerate(both.items()):
        recorder.stage(f"words of the {name}", ours.words[0], words[place])
        recorder.stage(f"generated vectors of the {name}", ours.generated[0], generated[place], kept=True)
    _default(recorder, "generated vectors of the negative prompt", model.condition(NEGATIVE).generated[0], generated[0])


def _default(recorder: Recorder, name: str, ours: Any, theirs: Any) -> None:
    """Say how far the default is from theirs."""
    recorder.stage(f"{name}, `corrected`", ours, theirs, note=OURS + NOTES[name])


def _regulariser(recorder: Recorder, module: Any, path: Path) -> None:
    """Compare their inversion under a network that sees a given noise and a scheduler that returns what it is given."""
    white = torch.randn(1, 4, 32, 16, generator=torch.Generator().manual_seed(SEED))
    noise = white + white.roll(1, 2) + 0.3

    class Seen(torch.nn.Module):
        def forward(self, *_: Any, **__: Any) -> Any:
            return (noise,)

    theirs = _pipeline(module)
    theirs.inverse_scheduler = types.SimpleNamespace(
        config=types.SimpleNamespace(prediction_type="epsilon"),
        alphas_cumprod=torch.ones(2),
        timesteps=torch.ones(1, dtype=torch.int64),
        order=1,
        set_timesteps=lambda *_, **__: None,
        scale_model_input=lambda latent, _: latent,
        step=lambda seen, *_: types.SimpleNamespace(prev_sample=seen),
    )
    encode = theirs.vae.encode

    def encoded(mel: Any) -> Any:  # without a draw before those of the regulariser
        found = encode(mel)
        found.latent_dist.sample = lambda _: found.latent_dist.mode()
        return found

    with (
        mock.patch.object(module, "prepare_unet", return_value=Seen()),
        mock.patch.object(theirs.vae, "encode", encoded),
    ):
        generator = torch.Generator().manual_seed(SEED)
        repaired, _ = theirs.invert(PROMPT, audio_path=str(path), generator=generator, num_inference_steps=1)
    corrected, official = (regularised(noise, 5, torch.Generator().manual_seed(SEED), name) for name in VARIANTS)
    recorder.keep(noise=noise)
    recorder.stage("regularised noise", official, repaired, kept=True)
    _default(recorder, "regularised noise", corrected, repaired)


def _concepts(theirs: Any, calculator: Any) -> tuple[Any, Any]:
    """Return the vectors of both concepts, each of T5 and of the language model, as their calculator averages them."""
    found = object.__new__(calculator)  # its own start moves the model to a GPU
    found.embedding_model, found.prompt_length = theirs, len(PROMPT.split())

    def captions(asked: str) -> list[str]:
        return SENTENCES[CHANGE.after if CHANGE.after in asked else CHANGE.before]

    with mock.patch.object(calculator, "generate_captions", staticmethod(captions)):
        before, generated_before, after, generated_after = found(CHANGE.before, CHANGE.after, verbose=False)
    return (before, generated_before), (after, generated_after)


def _direction(recorder: Recorder, theirs: Any, concepts: tuple[Any, Any], model: AudioLDM2) -> None:
    """Compare what is added to the words; theirs is cut or filled up with zeros where it is added."""
    source = model.condition(PROMPT)
    length = source.words.shape[1]
    moved = theirs.construct_direction(concepts[0][0], concepts[1][0])[:, :length]
    moved = torch.nn.functional.pad(moved, (0, 0, 0, length - moved.shape[1]))
    corrected, official = (_ours(model, variant)._direction(CHANGE, source) for variant in VARIANTS)
    recorder.stage("word direction", official, moved, kept=True)
    _default(recorder, "word direction", corrected, moved)


def _ours(model: AudioLDM2, variant: str) -> MusicMagus:
    return MusicMagus(model, steps=STEPS, negative_prompt=NEGATIVE, variant=variant, sentences=SENTENCES)


def _inversion(recorder: Recorder, theirs: Any, path: Path, model: AudioLDM2, request: EditRequest) -> Any:
    """Compare the noise of a recording from its log-mel on; return theirs."""
    generator = torch.Generator().manual_seed(SEED)
    inverted, _ = theirs.invert(PROMPT, audio_path=str(path), generator=generator, num_inference_steps=STEPS)
    corrected, official = (
        _ours(model, variant)._start(request, Seeds(0, SEED), model.condition(PROMPT)) for variant in VARIANTS
    )
    recorder.stage("inverted noise", official, inverted, kept=True)
    _default(recorder, "inverted noise", corrected, inverted)
    return inverted


def _edit(recorder: Recorder, theirs: Any, concepts: tuple[Any, Any], model: AudioLDM2, inverted: Any) -> None:
    """Compare the edit from their noise, and the gradients: in float64, as they are small differences."""
    source, edit, _ = _their_edit(theirs, concepts, inverted)
    ours = edit_from(_ours(model, "official"), inverted)
    recorder.stage("latent of the source", ours[0], source, kept=True)
    recorder.stage("edited latent", ours[1], edit, kept=True)
    _default(recorder, "edited latent, from one noise", edit_from(_ours(model, "corrected"), inverted)[1], edit)

    precise = AudioLDM2(named_pipeline().to(torch.float64))
    theirs.to(torch.float64)
    doubled = [tuple(part.double() for part in concept) for concept in concepts]
    *_, gradients = _their_edit(theirs, doubled, inverted.double())
    *_, found = edit_from(_ours(precise, "official"), inverted.double())
    for place, name in enumerate(("without the description", "with the description")):
        pulls = torch.cat([pair[place] for pair in gradients]), torch.cat(found[place::2])
        recorder.stage(f"gradient of the maps, latent {name}", pulls[1].flatten(0, 1), pulls[0])


def _their_edit(theirs: Any, concepts: Sequence[Any], start: Any) -> tuple[Any, Any, list[Any]]:
    """Return their latents of source and edit, and each step's gradient of both latents."""
    gradients: list[Any] = []

    class Steps(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            gradients.append(self.param_groups[0]["params"][0].grad.clone())
            return super().step(closure)

    (before, generated_before), (after, generated_after) = concepts
    with mock.patch.object(torch.optim, "SGD", Steps):
        source, edit = theirs(
            PROMPT,
            negative_prompt=NEGATIVE,
            source_embeddings=before,
            generated_source_embeddings=generated_before,
            target_embeddings=after,
            generated_target_embeddings=generated_after,
            num_inference_steps=STEPS,
            audio_length_in_s=SECONDS,
            guidance_scale=3.5,  # and the pull, as in their notebook
            cross_attention_guidance_amount=0.04,
            before_concept=CHANGE.before,
            after_concept=CHANGE.after,
            latents=start,
            output_type="latent",
        )
    return source.audios * theirs.vae.config.scaling_factor, edit.audios, gradients
