"""ZETA: zero-shot text-guided editing by edit-friendly inversion (Manor and Michaeli, 2024, section 4).

A source is noised independently at every step; the noises that lead from each of these to the next are worked out with
the description of the source, and kept. Run again with the description of the target from the step `start` on, they
keep what the two descriptions share. The inversion depends on source, its description and seed alone, so that all edits
of one source share it.

It equals the authors' code from the latent of the source to that of the edit, for 50 and 200 steps, within 5e-6 of the
largest value (`benchmarks/parity`), where ``zero_last`` sets the last noise to zero as they do. By default it is kept,
so that the source is rebuilt exactly, which changes an edit by 0.6 %. Further deviations: frames of the log-mel sit
5 ms later (see `log_mel`) and are padded with silence at the end, where theirs are followed by 2.4 % of silence and
then padded with up to three frames of zeros, which is loud, at the start; one channel is made by the mean.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, NamedTuple, Self

from music_evals.annotations import EditorInfo, EditRequest, Weights
from music_evals.editing.alignment import first_channel
from music_evals.editing.audioldm2 import SAMPLE_RATE, AudioLDM2, Condition
from music_evals.editing.conversion import without_weights
from music_evals.editing.system import Edited, Editor, Seeds
from music_evals.errors import InvalidInputError
from music_evals.protocols.settings import check_parameters

__all__ = ["Inversion", "Schedule", "Zeta", "forward", "invert"]

SYSTEMS = {"zeta": "Zeta"}

WEIGHTS: Final = "cvssp/audioldm2-music"
LICENCE: Final = "CC-BY-NC-SA-4.0"

Noise = Callable[[Any, Any], Any]
"""(latent, step) -> the noise that the network sees, of the latent's shape."""


class Schedule(NamedTuple):
    """The steps of a diffusion from the noisiest to the cleanest."""

    steps: tuple[int, ...]
    alphas: tuple[float, ...]  # cumulative product of the alphas at each step
    alphas_after: tuple[float, ...]  # that of the step that follows

    @classmethod
    def of(cls, scheduler: Any, n_steps: int) -> Schedule:
        """Read the steps of a `diffusers.DDIMScheduler`."""
        scheduler.set_timesteps(n_steps)
        steps = tuple(int(step) for step in scheduler.timesteps)
        gap = scheduler.config.num_train_timesteps // n_steps
        every = scheduler.alphas_cumprod
        after = (every[step - gap] if step >= gap else scheduler.final_alpha_cumprod for step in steps)
        return cls(steps, tuple(float(every[step]) for step in steps), tuple(map(float, after)))


class Inversion(NamedTuple):
    """What a source is under a schedule."""

    latents: Sequence[Any]  # the noised source at each step, and at last the source itself
    noises: Sequence[Any]  # the noise that leads from each to the next


def _mean_and_sigma(latent: Any, noise: Any, alpha: float, after: float) -> tuple[Any, float]:
    """Return mean and deviation of the next latent (DDIM with eta 1; Song et al. 2021, equations 12 and 16)."""
    variance = (1 - after) / (1 - alpha) * (1 - alpha / after)
    clean = (latent - (1 - alpha) ** 0.5 * noise) / alpha**0.5
    return after**0.5 * clean + max(1 - after - variance, 0.0) ** 0.5 * noise, variance**0.5


def invert(source: Any, noise: Noise, schedule: Schedule, generator: Any, *, zero_last: bool = False) -> Inversion:
    """Return the edit-friendly inversion of a latent, a tensor of any shape and floating type.

    `noise` is the network under the description of the source. The generator, on the CPU, draws one tensor of the
    source's shape a step. With `zero_last` the last noise is set to zero, as in the authors' code; the source is then
    not rebuilt exactly.
    """
    import torch

    latents = []
    for alpha in schedule.alphas:
        gaussian = torch.randn(source.shape, generator=generator, dtype=torch.float64).to(source)
        latents.append(alpha**0.5 * source + (1 - alpha) ** 0.5 * gaussian)
    latents.append(source)
    noises = []
    for place, (step, alpha, after) in enumerate(zip(*schedule, strict=True)):
        mean, sigma = _mean_and_sigma(latents[place], noise(latents[place], step), alpha, after)
        # a step to its own alpha, the last one of a scheduler without `steps_offset`, has no noise and rebuilds nothing
        noises.append((latents[place + 1] - mean) / sigma if sigma > 0 else torch.zeros_like(source))
        latents[place + 1] = mean + sigma * noises[-1]  # against the drift of rounding
    if zero_last:
        noises[-1] = torch.zeros_like(source)
    return Inversion(latents, noises)


def forward(inversion: Inversion, noise: Noise, schedule: Schedule, start: int) -> Any:
    """Return the latent that the last `start` steps make under another description, with the noises of the source.

    With the description of the source this is the source itself; with `start` 0 no step is made.
    """
    first = len(schedule.steps) - start
    latent = inversion.latents[first]
    for place in range(first, len(schedule.steps)):
        step, alpha, after = (part[place] for part in schedule)
        mean, sigma = _mean_and_sigma(latent, noise(latent, step), alpha, after)
        latent = mean + sigma * inversion.noises[place]
    return latent


class Zeta(Editor):
    """Edits a recording so that it fits a description, by AudioLDM 2.

    `start` is how many of the steps, at the end, are run anew: 0 is the source, more changes more (100, the authors'
    user study). `steps` and how strongly the descriptions count are those of the authors' code; for `zero_last` see
    `invert`. `from_pretrained` loads the model; without one it is a `ModelUnavailableError`.
    """

    _model: AudioLDM2
    licence = LICENCE
    BOUNDS: ClassVar = {"steps": (1, 1000), "start": (0, 1000)}

    def __init__(
        self,
        model: AudioLDM2 | None = None,
        *,
        steps: int = 200,
        start: int = 100,
        source_guidance: float = 3.0,
        target_guidance: float = 12.0,
        zero_last: bool = False,
        weights: Weights | None = None,
    ) -> None:
        if model is None:
            raise without_weights("zeta", "AudioLDM 2", WEIGHTS, LICENCE)
        check_parameters(type(self), {"steps": steps, "start": start})
        if start > steps:
            raise InvalidInputError(f"expected 0 <= `start` <= `steps` <= 1000, got {start} and {steps}")
        self._model, self._weights = model, weights
        self._parameters: dict[str, Any] = {
            "steps": steps,
            "start": start,
            "source_guidance": source_guidance,
            "target_guidance": target_guidance,
            "zero_last": zero_last,
            "precision": model.precision,
        }
        self._schedule = Schedule.of(model.pipeline.scheduler, steps)
        self._inverted: tuple[Any, Inversion] | None = None  # of the last source: its edits come one after the other

    @classmethod
    def from_pretrained(
        cls,
        source: str | os.PathLike[str],
        *,
        revision: str | None = None,
        device: str = "cpu",
        precision: str = "fp32",
        **parameters: Any,
    ) -> Zeta:
        """Load the parts of AudioLDM 2 from a folder, or from the Hub at a commit; `precision` is that of the U-Net."""
        model = AudioLDM2.from_pretrained(
            source, revision=revision, device=device, precision=precision, licence=LICENCE
        )
        return cls(model, weights=Weights(os.fspath(source), revision or "", LICENCE), **parameters)

    def to(self, device: str) -> Self:
        """Move the model to a device; an inversion that was kept is made again there."""
        self._inverted = None
        return super().to(device)

    def memory(self, seconds: float) -> tuple[int, int]:
        """Return the bytes of the weights, and about how many an edit takes besides."""
        return self._model.memory(seconds, 2 * int(self._parameters["steps"]) + 2)

    def network_calls(self, seconds: float) -> int:  # noqa: ARG002 (they are as many for all lengths)
        """Return how often an edit calls the U-Net: with and without a text in each step there and back."""
        return 2 * (int(self._parameters["steps"]) + int(self._parameters["start"]))

    @property
    def info(self) -> EditorInfo:
        """What it is, what it needs, and the parameters that it was made with."""
        return EditorInfo(
            name="zeta",
            title="ZETA, text-based",
            paper="Manor and Michaeli (2024), Zero-shot unsupervised and text-based audio editing using DDPM inversion",
            weights=(self._weights,) if self._weights else (),
            needs=("target_caption",),
            sample_rate=SAMPLE_RATE,
            mono=True,
            max_seconds=30.0,
            deterministic=False,
            parameters=self._parameters,
            backbone="diffusion",
        )

    def _edited(self, request: EditRequest, seeds: Seeds) -> Edited:
        import torch

        instruction, chosen = request.instruction, self._parameters
        with torch.no_grad():
            latent = self._model.encode(first_channel(request, SAMPLE_RATE))
            empty = self._model.condition("")
            source = self._model.condition(instruction.source_prompt) if instruction.source_prompt.strip() else None
            target = self._model.condition(instruction.target_caption())
            key = (seeds.source, instruction.source_prompt)
            if self._inverted is None or self._inverted[0] != key:
                generator = torch.Generator().manual_seed(seeds.source)
                source_noise = self._guided(empty, source, chosen["source_guidance"])
                self._inverted = (
                    key,
                    invert(latent, source_noise, self._schedule, generator, zero_last=bool(chosen["zero_last"])),
                )
            target_noise = self._guided(empty, target, chosen["target_guidance"])
            edited = forward(self._inverted[1], target_noise, self._schedule, int(chosen["start"]))
            return Edited(self._model.decode(edited)[None], SAMPLE_RATE)

    def _guided(self, empty: Condition, wanted: Condition | None, weight: float) -> Noise:
        """Return the network with guidance away from no description; without a description it is not guided."""

        def noise(latent: Any, step: Any) -> Any:
            plain = self._model.noise(latent, step, empty)
            return plain if wanted is None else plain + weight * (self._model.noise(latent, step, wanted) - plain)

        return noise
