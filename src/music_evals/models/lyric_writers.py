"""Language models that answer a prompt: a function, a model of transformers, an OpenAI-compatible endpoint.

Each fulfils `music_evals.protocols.LyricWriter` and says how it likes to be asked: `batch_size` prompts in a call,
`concurrency` calls at once. An answer that fails raises `BackendError`, and the next prompt may well
succeed; a model that is not there, or refuses the key, raises `ModelUnavailableError`, and no prompt will.

MuChin publishes no decoding settings, so None takes the model's own (its generation config, or the server's default).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from music_evals.errors import BackendError, InvalidInputError, UnsupportedTypeError
from music_evals.lyrics.model_files import choose_device
from music_evals.lyrics.prompts import theme_prompt
from music_evals.models.endpoints import EndpointWriter
from music_evals.models.language_models import (
    MAX_NEW_TOKENS,
    NOTHING,
    check_decoding,
    checked_name,
    load_language_model,
    prompt_text,
    read_weights,
)
from music_evals.protocols import LyricWriter, Written

if TYPE_CHECKING:
    import torch

__all__ = ["MAX_NEW_TOKENS", "CallableWriter", "EndpointWriter", "TransformersWriter", "write_themes"]


def write_themes(
    writer: LyricWriter | TransformersWriter, lyrics: Sequence[str], *, language: str = "zh", seed: int = 0
) -> list[Written]:
    """Let a model say what lyrics are about, such as one that ``models/lyric_writer/train-themes.yaml`` tuned.

    The writer is any of this module, or another `protocols.LyricWriter`. Texts have section headers or not; an empty
    one raises `InvalidLyricsError`, a language without a template (`lyrics.prompts.theme_prompt`) `UnknownNameError`.
    The answers are one paragraph a text, in their order.
    """
    return writer.write([theme_prompt(text, language=language) for text in lyrics], seed=seed)


class CallableWriter:
    """Any function from a prompt to a text.

    Parameters
    ----------
    function
        ``function(prompt)``, or with `takes_seed` ``function(prompt, seed)``; returns a text.
    name
        System id in records and tables.
    takes_seed
        Give it the seed. Without, it counts as deterministic.
    details
        What a receipt should say of it, as JSON values: version, settings.

    Raises
    ------
    InvalidInputError
        An empty name.
    """

    batch_size = 1
    concurrency = 1

    def __init__(
        self, function: Callable[..., str], name: str, *, takes_seed: bool = False, details: Mapping[str, Any] = NOTHING
    ) -> None:
        self.name = checked_name(name)
        self.deterministic = not takes_seed
        self._function = function
        self._details = dict(details)

    def write(self, prompts: Sequence[str], *, seed: int) -> list[Written]:
        """Return one answer a prompt, in their order; what the function raises comes through.

        Something other than a text raises `UnsupportedTypeError`.
        """
        arguments = () if self.deterministic else (seed,)
        answers = []
        for prompt in prompts:
            text: object = self._function(prompt, *arguments)
            if not isinstance(text, str):
                raise UnsupportedTypeError(
                    f"{self.name} returned {type(text).__name__} in place of a text; return a str"
                )
            answers.append(Written(text))
        return answers

    def describe(self) -> Mapping[str, Any]:
        """Return what decides its answers."""
        return {"kind": "callable", **self._details}


class TransformersWriter:
    """A causal language model of transformers.

    A model with a chat template gets the prompt as the message of a user; one without gets the plain prompt, which its
    receipt says. Configuration and tokenizer are read at once, weights at the first prompt.

    Each prompt has random numbers of its own, drawn from its seed and its words: a prompt's text does not depend on
    which others stand in its batch, but for sums that round differently with the padding (never seen in float32; in 16
    bits a near tie may fall the other way).

    Parameters
    ----------
    model
        Folder or Hub id.
    name
        System id in records and tables; None takes the last part of `model`.
    revision
        Commit, tag or branch on the Hub.
    device
        As torch names it; None takes CUDA where there is one, else the CPU.
    dtype
        As torch names it, such as ``"bfloat16"``; ``"auto"`` is that of the weights.
    batch_size
        Prompts in a batch, at least 1.
    max_new_tokens
        The longest answer, at least 1.
    temperature
        At least 0; 0 takes the likeliest token each time. None takes the model's own decoding.
    top_p
        Above 0 and up to 1; None takes the model's own.
    trust_remote_code
        Run code that comes with the model.
    template_options
        Given to the chat template, such as ``{"enable_thinking": False}``.

    Raises
    ------
    ModelUnavailableError
        No such model, no network, or one that transformers cannot read; the message says how to get it. The weights
        must be safetensors.
    MissingBackendError
        transformers is not installed.
    InvalidInputError
        A number out of range, or a dtype or device that torch does not have.
    """

    concurrency = 1

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        name: str | None = None,
        revision: str | None = None,
        device: str | None = None,
        dtype: str = "auto",
        batch_size: int = 8,
        max_new_tokens: int = MAX_NEW_TOKENS,
        temperature: float | None = None,
        top_p: float | None = None,
        trust_remote_code: bool = False,
        template_options: Mapping[str, Any] = NOTHING,
    ) -> None:
        check_decoding(temperature, top_p, max_new_tokens)
        if batch_size < 1:
            raise InvalidInputError(f"the batch size must be at least 1, got {batch_size}")
        self.source = os.fspath(model)
        self.name = checked_name(Path(self.source).name if name is None else name)
        self.batch_size = batch_size
        self.max_new_tokens = max_new_tokens
        self._device = choose_device(device)
        self._trust = trust_remote_code
        self._template_options = dict(template_options)
        self._loaded = load_language_model(self.source, revision, trust=trust_remote_code)
        self._dtype = _checked_dtype(dtype, self._loaded.config)
        self.sampling = _sampling(self._loaded.generation, temperature, top_p)
        self._model: Any = None

    @property
    def deterministic(self) -> bool:
        """Whether it takes the likeliest token each time."""
        return not self.sampling

    def write(self, prompts: Sequence[str], *, seed: int) -> list[Written]:
        """Return one answer a prompt, in their order.

        `ModelUnavailableError`: the weights are missing or damaged. `InvalidInputError`: a prompt leaves no room for
        the answer in the model's context. `BackendError`: out of memory.
        """
        answers: list[Written] = []
        for start in range(0, len(prompts), self.batch_size):
            answers += self._write_batch(list(prompts[start : start + self.batch_size]), seed)
        return answers

    def describe(self) -> Mapping[str, Any]:
        """Return what decides its answers."""
        return {
            "kind": "transformers",
            "model": self.source,
            "commit": self._loaded.place.commit,
            "content_hash": None if self._loaded.place.commit else self._loaded.place.identity,
            "prompt_form": "chat template" if self._loaded.tokenizer.chat_template else "plain prompt",
            "template_options": dict(self._template_options),
            "sampling": dict(self.sampling) or "likeliest token",
            "max_new_tokens": self.max_new_tokens,
            "dtype": str(self._dtype).removeprefix("torch."),
            "device": self._device.type,
            "versions": {name: metadata.version(name) for name in ("torch", "transformers")},
        }

    def close(self) -> None:
        """Let the weights go; they are loaded again when they are needed."""
        import torch

        self._model = None
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def _write_batch(self, prompts: list[str], seed: int) -> list[Written]:
        import torch
        from transformers import GenerationConfig, LogitsProcessorList

        model, tokenizer, ends = self.load(), self._loaded.tokenizer, self._loaded.end_ids
        inputs = self._encoded(prompts).to(self._device)
        # sampling is done by our own last processor; what else the model's own configuration says is kept
        generation = GenerationConfig(
            do_sample=False, num_beams=1, max_new_tokens=self.max_new_tokens, pad_token_id=tokenizer.pad_token_id
        )
        warpers = _warpers()
        processors = [warpers[name](value) for name, value in self.sampling.items()]
        if self.sampling:
            processors.append(_Draw(prompts, seed, self._device))
        try:
            with torch.inference_mode():
                output = model.generate(
                    **inputs, generation_config=generation, logits_processor=LogitsProcessorList(processors)
                )
        except torch.OutOfMemoryError as error:
            raise BackendError(
                f"{self.name}: out of memory with {len(prompts)} prompts in a batch; lower the batch size"
            ) from error
        read = inputs["attention_mask"].sum(dim=1).tolist()
        answers: list[Written] = []
        for ids, n_read in zip(output[:, inputs["input_ids"].shape[1] :].tolist(), read, strict=True):
            n_written = next((index + 1 for index, token in enumerate(ids) if token in ends), len(ids))
            text = tokenizer.decode(ids[:n_written], skip_special_tokens=True, clean_up_tokenization_spaces=False)
            cut_off = n_written == self.max_new_tokens and ids[n_written - 1] not in ends
            answers.append(Written(text, n_read, n_written, cut_off))
        return answers

    def load(self) -> Any:
        """Return the network, loaded if it is not yet; `write` does it where nobody did before."""
        if self._model is None:
            model = read_weights(self.source, self._loaded, self._dtype, trust=self._trust)
            own = model.generation_config
            own.do_sample, own.num_beams = False, 1
            for setting in _warpers():
                setattr(own, setting, None)
            self._model = model.to(self._device)
        return self._model

    def _encoded(self, prompts: Sequence[str]) -> Any:
        """Return ids and mask, (batch, tokens), padded on the left."""
        tokenizer = self._loaded.tokenizer
        texts = [prompt_text(tokenizer, prompt, self._template_options) for prompt in prompts]
        # a chat template writes the special tokens itself
        inputs = tokenizer(
            [text for text, _ in texts],
            padding=True,
            add_special_tokens=not any(is_chat for _, is_chat in texts),
            return_tensors="pt",
            return_token_type_ids=False,
            return_attention_mask=True,
        )
        max_tokens = getattr(self._loaded.config.get_text_config(), "max_position_embeddings", None)
        needed = inputs["input_ids"].shape[1] + self.max_new_tokens
        if max_tokens is not None and needed > max_tokens:
            raise InvalidInputError(
                f"{self.name} reads {max_tokens} tokens at most; prompt and answer may take {needed}, "
                f"{self.max_new_tokens} of them the answer; lower these, or take another model"
            )
        return inputs


def _checked_dtype(dtype: str, config: Any) -> torch.dtype:
    import torch

    if dtype == "auto":
        own = config.get_text_config().dtype or config.dtype
        return own if isinstance(own, torch.dtype) else torch.float32
    torch_dtype = getattr(torch, dtype, None)
    if not isinstance(torch_dtype, torch.dtype) or not torch_dtype.is_floating_point:
        raise InvalidInputError(f"dtype must be auto or one of float32, float16 and bfloat16, got {dtype!r}")
    return torch_dtype


def _warpers() -> dict[str, Any]:
    """Return setting of a generation config -> what applies it, in the order in which transformers applies them."""
    from transformers import generation

    return {
        "temperature": generation.TemperatureLogitsWarper,
        "top_h": generation.logits_process.TopHLogitsWarper,
        "top_k": generation.TopKLogitsWarper,
        "top_p": generation.TopPLogitsWarper,
        "min_p": generation.MinPLogitsWarper,
        "typical_p": generation.TypicalLogitsWarper,
        "epsilon_cutoff": generation.EpsilonLogitsWarper,
        "eta_cutoff": generation.EtaLogitsWarper,
    }


_NEUTRAL: Final = {"top_k": 0, "top_p": 1.0, "typical_p": 1.0, "epsilon_cutoff": 0.0, "eta_cutoff": 0.0}
"""Values that change nothing; the temperature stands in a receipt even where it is 1."""


def _sampling(own: Any, temperature: float | None, top_p: float | None) -> dict[str, float]:
    """Return the settings of sampling in order; none where the likeliest token is taken."""
    if temperature == 0 or (temperature is None and not own.do_sample):
        return {}
    defaults = {name: getattr(own, name, None) for name in _warpers()}
    options = {"temperature": temperature, "top_p": top_p}
    given = {name: float(value) for name, value in options.items() if value is not None}
    settings = {**defaults, "temperature": defaults["temperature"] or 1.0, **given}
    return {name: value for name, value in settings.items() if value is not None and value != _NEUTRAL.get(name)}


class _Draw:
    """Adds Gumbel noise, so that the largest logit is a draw from their softmax; each row has its own generator."""

    def __init__(self, prompts: Sequence[str], seed: int, device: torch.device) -> None:
        import torch

        seeds = [hashlib.sha256(f"{seed}\0{prompt}".encode()).digest()[:7] for prompt in prompts]
        self._generators = [torch.Generator(device).manual_seed(int.from_bytes(digest)) for digest in seeds]

    def __call__(self, _: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return scores (batch, vocabulary) with noise."""
        import torch

        noise = torch.empty_like(scores, dtype=torch.float32)
        for row, generator in zip(noise, self._generators, strict=True):
            row.exponential_(generator=generator)
        return scores - noise.clamp_min_(torch.finfo(torch.float32).tiny).log_()
