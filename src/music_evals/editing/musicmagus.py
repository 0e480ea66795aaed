"""MusicMagus: one word of a description is exchanged, by AudioLDM 2 (Zhang et al., 2024, sections 3 and 4).

The description's word vectors are moved along the difference between two concepts, which is the mean over sentences
about each. The source is run as it is and with the moved vectors, step by step side by side; before each step the
latent of the edit is moved so that its cross-attention maps come nearer to those of the source. The inversion of a
source depends on it, its description and the seed alone, and all its edits share it.

``variant="official"`` is the authors' code: equal to it from the log-mel spectrogram to the edited latent, within 5e-6
of the largest value. The default ``corrected`` is ours: the pull of the maps acts on the latent of the pass that sees
the description, and that latent goes on, where theirs pulls the latents of both passes and goes on with the other; the
latent is the mode of the posterior and not drawn from it; noise is regularised as in the article that theirs follows;
padding does not count in the mean of the sentences; the negative prompt is not padded to the description. With random
weights the noise of an inversion differs by 97 % of the largest value, and an edit from one noise by 96 %
(`benchmarks/parity`).

Deviations of both: frames of the log-mel sit 5 ms later (see `log_mel`), theirs are followed by 2.4 % of silence, one
channel is made by the mean, the sentences are a fixed table of templates, and words are exchanged whole. A re-weighting
of the new word that has no effect there is left out.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Self

from music_evals.annotations import EditInstruction, EditorInfo, EditRequest, Weights
from music_evals.editing.alignment import first_channel
from music_evals.editing.audioldm2 import SAMPLE_RATE, AudioLDM2, Condition
from music_evals.editing.conversion import without_weights
from music_evals.editing.system import Edited, Editor, Seeds
from music_evals.editing.zeta import Noise, Schedule
from music_evals.errors import UnknownNameError
from music_evals.protocols.settings import check_parameters

__all__ = [
    "SENTENCES", "VARIANTS", "MusicMagus", "ddim_step", "direction", "invert_ddim", "regularised", "sentences_about",
]  # fmt: skip

SYSTEMS = {"musicmagus": "MusicMagus"}

WEIGHTS: Final = "cvssp/audioldm2"
LICENCE: Final = "CC-BY-NC-SA-4.0"

VARIANTS: Final = ("corrected", "official")
"""Ours, and the authors' code."""

_QUALITIES = ("", "slow ", "lively ", "soft ", "bright ", "warm ")
_FORMS = (
    "a {quality}piece of {word} music",
    "a {quality}recording with a typical {word} sound",
    "{quality}{word} music for a small room",
    "this {quality}track sounds like {word} music",
)
SENTENCES: Final = tuple(form.replace("{quality}", quality) for form in _FORMS for quality in _QUALITIES)
"""Twenty-four sentences about any concept, with ``{word}``: our own, in place of those that a language model wrote."""

# Parmar et al. (2023), pix2pix-zero, section 3.1: noise of an inversion is kept like noise
_REGULARISER_PULLS = 5  # towards no correlation, in each round
_REGULARISER_WEIGHT = 20.0
_SMALLEST_LEVEL = 8


def sentences_about(concept: str) -> tuple[str, ...]:
    """Return the sentences of the table about a concept."""
    return tuple(sentence.format(word=concept) for sentence in SENTENCES)


def direction(encode: Callable[[str], Any], before: Sequence[str], after: Sequence[str], length: int) -> Any:
    """Return the difference between the mean vectors of two sets of sentences, (length, width), zero beyond both.

    `encode` gives the vectors of a sentence, (words, width), without padding; `before` and `after` are sentences about
    the concept that goes and the one that comes; `length` is that of the description that is to be moved, in tokens.
    """
    import torch

    means = []
    for sentences in (after, before):
        total: Any = 0.0
        count = torch.zeros(length, 1)  # of sentences that reach each place
        for sentence in sentences:
            vectors = encode(sentence)[:length]
            missing = length - len(vectors)
            total = total + torch.nn.functional.pad(vectors, (0, 0, 0, missing))
            count[: len(vectors)] += 1
        means.append(total / count.clamp(min=1).to(total))
    return means[0] - means[1]


def ddim_step(latent: Any, noise: Any, alpha: float, after: float) -> Any:
    """Return the latent at another level of noise (Song et al. 2021, equation 12 with sigma 0), either way."""
    clean = (latent - (1 - alpha) ** 0.5 * noise) / alpha**0.5
    return after**0.5 * clean + (1 - after) ** 0.5 * noise


def invert_ddim(
    source: Any, noise: Noise, schedule: Schedule, repair: Callable[[Any], Any] = lambda noise: noise
) -> Any:
    """Return the noise from which the steps of a schedule lead back to a latent, to the first order.

    `noise` is the network under the description of the source; `repair` is what is done to each noise that it sees
    (`regularised`).
    """
    latent = source
    for step, alpha, after in reversed(list(zip(*schedule, strict=True))):
        latent = ddim_step(latent, repair(noise(latent, step)), after, alpha)
    return latent


def regularised(noise: Any, rounds: int, generator: Any, variant: str = "corrected") -> Any:
    """Return noise (1, channels, height, width) that is more like white noise of variance 1.

    Each round pulls five times against the correlation with itself, rolled by a random number of places, and once
    towards mean 0 and variance 1. ``corrected`` pulls at sizes halved as long as eight rows or columns are left, by the
    mean over channels; ``official`` at the full size alone, by the sum over channels, of which each pull takes a
    fifth, and by a divergence without the factor one half.
    """
    import torch

    correlation, pulled, parted = {
        "corrected": (_mean_correlation, _REGULARISER_WEIGHT, _REGULARISER_WEIGHT / 2),
        "official": (_summed_correlation, _REGULARISER_WEIGHT / _REGULARISER_PULLS, _REGULARISER_WEIGHT),
    }[variant]
    with torch.enable_grad():
        for _ in range(rounds):
            for _ in range(_REGULARISER_PULLS):
                noise = noise.detach().requires_grad_()
                noise = noise - pulled * torch.autograd.grad(correlation(noise, generator), noise)[0]
            noise = noise.detach().requires_grad_()
            variance = noise.var()
            divergence = variance + noise.mean() ** 2 - 1 - (variance + 1e-7).log()
            noise = noise - parted * torch.autograd.grad(divergence, noise)[0]
    return noise.detach()


def _mean_correlation(noise: Any, generator: Any) -> Any:
    """Return the mean over channels of squared correlations, summed over sizes and axes."""
    import torch

    loss: Any = 0.0
    while True:
        for axis in (2, 3):
            places = 1 + int(torch.randint(max(noise.shape[axis] // 2, 1), (1,), generator=generator))
            loss = loss + (noise * noise.roll(places, axis)).mean((2, 3)).pow(2).mean()
        if min(noise.shape[2:]) < 2 * _SMALLEST_LEVEL:
            return loss
        noise = torch.nn.functional.avg_pool2d(noise, 2)


def _summed_correlation(noise: Any, generator: Any) -> Any:
    """Return the sum over channels of squared correlations; both axes of one are rolled as far, perhaps by no place."""
    import torch

    loss: Any = 0.0
    for channel in noise.unbind(1):  # (1, height, width)
        places = int(torch.randint(channel.shape[1] // 2, (1,), generator=generator))
        for axis in (1, 2):
            loss = loss + (channel * channel.roll(places, axis)).mean() ** 2
    return loss


class MusicMagus(Editor):
    """Exchanges a word of a description and edits the recording so, by AudioLDM 2.

    `steps`, `guidance` (how strongly the description counts) and `pull` are those of the authors' notebook. The pull is
    the size of the step that brings the maps nearer; 0 leaves the edit free. With the variant ``official`` the pull
    moves the latents of both passes, each by its own gradient, the noise under the description is that at its own
    latent, and the other latent goes on; the regulariser is theirs, the latent of a recording is drawn from the
    posterior, sentences are padded to the words of the description and two, and the negative prompt to the length of
    the text beside it.

    A `noise_seed` of None inverts the recording. A seed starts from the noise that a generator on the CPU draws from
    it: for recordings that this very model made from this seed; of such a source only the length is read. See
    `regularised` for its rounds; 0 leaves out what keeps an inversion like noise. `sentences` are those about concepts,
    in place of `sentences_about`. Guidance leads away from `negative_prompt`. `from_pretrained` loads the model;
    without one it is a `ModelUnavailableError`.
    """

    _model: AudioLDM2
    licence = LICENCE
    BOUNDS: ClassVar = {"steps": (1, 1000), "pull": (0, 1000), "regulariser_rounds": (0, 1000)}

    def __init__(
        self,
        model: AudioLDM2 | None = None,
        *,
        steps: int = 100,
        guidance: float = 3.5,
        pull: float = 0.04,
        negative_prompt: str = "low quality",
        variant: str = "corrected",
        noise_seed: int | None = None,
        regulariser_rounds: int = 5,
        sentences: Mapping[str, Sequence[str]] | None = None,
        weights: Weights | None = None,
    ) -> None:
        if model is None:
            raise without_weights("musicmagus", "AudioLDM 2", WEIGHTS, LICENCE)
        check_parameters(type(self), {"steps": steps, "pull": pull, "regulariser_rounds": regulariser_rounds})
        if variant not in VARIANTS:
            raise UnknownNameError("variant", variant, VARIANTS)
        self._model, self._weights, self._official = model, weights, variant == "official"
        self._parameters: dict[str, Any] = {
            "steps": steps,
            "guidance": guidance,
            "pull": pull,
            "negative_prompt": negative_prompt,
            "variant": variant,
            "noise_seed": noise_seed,
            "regulariser_rounds": regulariser_rounds,
            "sentences": {concept: list(texts) for concept, texts in (sentences or {}).items()},
        }
        self._schedule = Schedule.of(model.pipeline.scheduler, steps)
        self._inverted: tuple[Any, Any] | None = None  # of the last source: its edits come one after the other

    def to(self, device: str) -> Self:
        """Move the model to a device; the noise of a source that was kept is worked out again there."""
        self._inverted = None
        return super().to(device)

    @classmethod
    def from_pretrained(
        cls, source: str | os.PathLike[str], *, revision: str | None = None, device: str = "cpu", **parameters: Any
    ) -> MusicMagus:
        """Load the parts of AudioLDM 2 from a folder, or from the Hub at a commit, in float32.

        Its step is a gradient through the network, which narrower types could lose.
        """
        model = AudioLDM2.from_pretrained(source, revision=revision, device=device, licence=LICENCE)
        return cls(model, weights=Weights(os.fspath(source), revision or "", LICENCE), **parameters)

    def memory(self, seconds: float) -> tuple[int, int]:
        """Return the bytes of the weights, and about how many an edit takes besides."""
        return self._model.memory(seconds, 4, gradient=bool(self._parameters["pull"]))

    def network_calls(self, seconds: float) -> int:  # noqa: ARG002 (they are as many for all lengths)
        """Return how often an edit calls the U-Net: once a step there, four times back; a gradient takes three."""
        return (11 if self._official else 8) * int(self._parameters["steps"])

    @property
    def info(self) -> EditorInfo:
        """What it is, what it needs, and the parameters that it was made with."""
        is_random = self._parameters["noise_seed"] is None and (
            self._official or self._parameters["regulariser_rounds"] > 0
        )
        return EditorInfo(
            name="musicmagus",
            title="MusicMagus",
            paper="Zhang et al. (2024), MusicMagus: zero-shot text-to-music editing via diffusion models",
            weights=(self._weights,) if self._weights else (),
            needs=("source_prompt", "word_pair"),
            sample_rate=SAMPLE_RATE,
            mono=True,
            max_seconds=30.0,
            deterministic=not is_random,
            parameters=self._parameters,
            backbone="diffusion",
        )

    def supports(self, request: EditRequest) -> str:
        """Return why it cannot follow a request, in a sentence that says what to do; empty if it can."""
        if why := super().supports(request):
            return why
        if not _exchanged(request):
            before = request.instruction.before
            return f"musicmagus exchanges a word of the source prompt, which does not hold {before!r}; write it into it"
        return ""

    def _edited(self, request: EditRequest, seeds: Seeds) -> Edited:
        import torch

        instruction, negative = request.instruction, self._parameters["negative_prompt"]
        texts = (instruction.source_prompt, _exchanged(request))
        with torch.no_grad():
            source, target = (self._model.condition(text) for text in texts)
            empty, free = (self._model.condition(negative, text if self._official else "") for text in texts)
            start = self._start(request, seeds, source)
            moved = source.words + self._direction(instruction, source)
            # both passes go on with the words and the mask of the source's
            edited = (empty._replace(generated=free.generated), Condition(target.generated, moved, source.mask))
            return Edited(self._model.decode(self._run(start, (empty, source), edited)[1])[None], SAMPLE_RATE)

    def _start(self, request: EditRequest, seeds: Seeds, source: Condition) -> Any:
        """Return the noise that both branches start from; that of the last source is kept."""
        import torch

        key = (seeds.source, request.instruction.source_prompt)
        if self._inverted is None or self._inverted[0] != key:
            seed, rounds = self._parameters["noise_seed"], int(self._parameters["regulariser_rounds"])
            generator = torch.Generator().manual_seed(seeds.source if seed is None else int(seed))
            latent_generator = generator if self._official and seed is None else None
            latent = self._model.encode(first_channel(request, SAMPLE_RATE), latent_generator)
            if seed is not None:
                noise = torch.randn(latent.shape, generator=generator).to(latent)
            else:
                noise = invert_ddim(
                    latent,
                    lambda here, step: self._model.noise(here, step, source),
                    self._schedule,
                    lambda predicted: regularised(predicted, rounds, generator, self._parameters["variant"]),
                )
            self._inverted = (key, noise)
        return self._inverted[1]

    def _direction(self, instruction: EditInstruction, source: Condition) -> Any:
        own = self._parameters["sentences"]
        old, new = (own.get(word) or sentences_about(word) for word in (instruction.before, instruction.after))
        length = len(re.findall(r"\w+|[^\w\s]", instruction.source_prompt)) + 2 if self._official else None
        moved = direction(lambda text: self._model.word_vectors(text, length), old, new, source.words.shape[1])
        return moved.to(source.words)[None]

    def _run(
        self, start: Any, source: tuple[Condition, Condition], edit: tuple[Condition, Condition]
    ) -> tuple[Any, Any]:
        """Return the latents of source and edit: in each step the maps of the one are what the other is pulled to.

        Guidance combines the noise under the negative prompt with that under the description.
        """
        guidance, noise, first, second = self._parameters["guidance"], self._model.noise, start, start
        with _AttentionMaps(self._model.pipeline.unet) as maps:
            for step, alpha, after in zip(*self._schedule, strict=True):
                source_noises, halves = [], []
                for condition, new, moves in zip(source, edit, (self._official, True), strict=True):
                    with maps.collected() as wanted:
                        source_noises.append(noise(first, step, condition))
                    halves.append(self._pulled(second, maps, wanted, step, new) if moves else second)
                if not self._official:
                    halves[0] = halves[1]
                unconditional, conditional = (
                    noise(half, step, condition) for half, condition in zip(halves, edit, strict=True)
                )
                first = ddim_step(
                    first, source_noises[0] + guidance * (source_noises[1] - source_noises[0]), alpha, after
                )
                second = ddim_step(halves[0], unconditional + guidance * (conditional - unconditional), alpha, after)
        return first, second

    def _pulled(self, latent: Any, maps: _AttentionMaps, wanted: Sequence[Any], step: Any, condition: Condition) -> Any:
        """Return a latent whose maps are nearer to those that are wanted."""
        import torch

        pull = self._parameters["pull"]
        if not pull:
            return latent
        with torch.enable_grad():
            moving = latent.detach().requires_grad_()
            with maps.compared(wanted) as far:
                self._model.noise(moving, step, condition)
            (gradient,) = torch.autograd.grad(sum(far), moving)
        return latent - pull * gradient


def _exchanged(request: EditRequest) -> str:
    """Return the source prompt with the word exchanged, or an empty text where it does not hold it."""
    return dataclasses.replace(request.instruction, target_prompt="").target_caption()


class _Processor:
    """Attention processor of diffusers for one layer; it passes each map to its owner."""

    def __init__(self, owner: _AttentionMaps) -> None:
        self.owner = owner

    def __call__(
        self, attn: Any, hidden_states: Any, encoder_hidden_states: Any = None, attention_mask: Any = None, **_: Any
    ) -> Any:
        """Return (batch, rows, width) as softmax(QK' / sqrt(d) + mask) V, with the map in sight."""
        batch, n_heads = len(hidden_states), attn.heads
        context = hidden_states if encoder_hidden_states is None else encoder_hidden_states
        query, key, value = (
            part.unflatten(-1, (n_heads, -1)).transpose(1, 2)
            for part in (attn.to_q(hidden_states), attn.to_k(context), attn.to_v(context))
        )  # (batch, heads, rows or words, width of a head)
        scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
        if attention_mask is not None:
            mask = attn.prepare_attention_mask(attention_mask, context.shape[1], batch)
            scores = scores + mask.view(batch, n_heads, -1, mask.shape[-1])
        weights = scores.softmax(-1)
        self.owner.see(weights)
        out = (weights @ value).transpose(1, 2).flatten(-2)
        return attn.to_out[1](attn.to_out[0](out))


class _AttentionMaps:
    """Looks at the cross-attention of a network while it is entered; the network's processors are put back after it.

    The cross-attention layers have neither norms, residuals nor a factor of their own, as those in its transformers.
    """

    def __init__(self, unet: Any) -> None:
        self._unet = unet
        self._before: dict[str, Any] = {}
        self._see: Callable[[Any], None] | None = None

    def __enter__(self) -> Self:
        self._before = dict(self._unet.attn_processors)
        ours = {}
        for name, processor in self._before.items():
            layer = self._unet.get_submodule(name.removesuffix(".processor"))
            ours[name] = _Processor(self) if layer.is_cross_attention else processor
        self._unet.set_attn_processor(ours)  # it empties the dict that it is given
        return self

    def __exit__(self, *_: object) -> None:
        self._unet.set_attn_processor(self._before)

    def see(self, weights: Any) -> None:
        """Take the map of the next layer, (batch, heads, rows, words)."""
        if self._see is not None:
            self._see(weights)

    @contextlib.contextmanager
    def collected(self) -> Iterator[list[Any]]:
        """Collect the maps of a pass in the list that it yields, one a layer."""
        maps: list[Any] = []
        with self._seeing(maps.append):
            yield maps

    @contextlib.contextmanager
    def compared(self, wanted: Sequence[Any]) -> Iterator[list[Any]]:
        """Yield a list of the distances of the maps of a pass from the wanted ones: differences squared and summed.

        It is the mean over batch and heads, halved: the authors' code has both halves of guidance in its batch. Their
        sum can be differentiated by whatever the pass depends on.
        """
        distances: list[Any] = []

        def append(weights: Any) -> None:
            distances.append(((weights - wanted[len(distances)]) ** 2).sum((-1, -2)).mean() / 2)

        with self._seeing(append):
            yield distances

    @contextlib.contextmanager
    def _seeing(self, see: Callable[[Any], None]) -> Iterator[None]:
        self._see = see
        try:
            yield
        finally:
            self._see = None
