"""What the writers of lyrics share: how long an answer may be, checks of names and decoding, and models as files.

Of a causal language model of transformers configuration and tokenizer are read first, weights when they are needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from music_evals.errors import InvalidInputError, importing
from music_evals.lyrics.model_files import ModelPlace, find_model, has_file, unavailable
from music_evals.protocols.settings import check_type

__all__ = [
    "MAX_NEW_TOKENS",
    "NOTHING",
    "LanguageModel",
    "check_decoding",
    "checked_name",
    "load_language_model",
    "prompt_text",
    "read_weights",
]

if TYPE_CHECKING:
    import torch

MAX_NEW_TOKENS: Final = 2048
"""The longest answer by default: the longest song of MuChin has 134 lines of some ten characters."""

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})  # no options


def checked_name(name: str) -> str:
    """Return a name that is not empty."""
    if not name.strip():
        raise InvalidInputError("a model needs a name that is not empty")
    return name


def check_decoding(temperature: float | None, top_p: float | None, max_new_tokens: int) -> None:
    """Raise where a setting is outside its range."""
    check_type("temperature", temperature, float | None)
    check_type("top_p", top_p, float | None)
    check_type("max_new_tokens", max_new_tokens, int)
    if temperature is not None and not 0 <= temperature < float("inf"):
        raise InvalidInputError(f"the temperature must be at least 0 and finite, got {temperature}")
    if top_p is not None and not 0 < top_p <= 1:
        raise InvalidInputError(f"top_p must lie above 0 and be at most 1, got {top_p}")
    if max_new_tokens < 1:
        raise InvalidInputError(f"an answer must have room for at least 1 token, got {max_new_tokens}")


def prompt_text(tokenizer: Any, prompt: str, options: Mapping[str, Any] = NOTHING) -> tuple[str, bool]:
    """Return a prompt as a model reads it, writing or being tuned, and whether a chat template wrote it."""
    if not tokenizer.chat_template:
        return prompt, False
    message = [{"role": "user", "content": prompt}]
    text: str = tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True, **options)
    return text, True


class LanguageModel(NamedTuple):
    """What is read of a model without its weights."""

    config: Any
    generation: Any
    tokenizer: Any
    end_ids: frozenset[int]
    place: ModelPlace


def load_language_model(source: str, revision: str | None, *, trust: bool) -> LanguageModel:
    """Read configuration and tokenizer."""
    with importing("models", "a language model of transformers"):
        from transformers import AutoConfig, AutoTokenizer, GenerationConfig
    place = find_model(source, revision, "config.json")
    commit, named = place.commit, has_file(source, place, "generation_config.json")  # many models come without it
    try:
        config = AutoConfig.from_pretrained(source, revision=commit, trust_remote_code=trust)
        tokenizer = AutoTokenizer.from_pretrained(source, revision=commit, trust_remote_code=trust, padding_side="left")
        generation = (
            GenerationConfig.from_pretrained(source, revision=commit)
            if named
            else GenerationConfig.from_model_config(config)
        )
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise unavailable(source, str(error) or type(error).__name__) from error
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.convert_ids_to_tokens(0)  # masked: any token will do
    ends = generation.eos_token_id
    end_ids = frozenset(ends if isinstance(ends, list) else [] if ends is None else [ends])
    return LanguageModel(config, generation, tokenizer, end_ids, place)


def read_weights(source: str, loaded: LanguageModel, dtype: torch.dtype, *, trust: bool) -> Any:
    """Read the weights, ready to write."""
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM

    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            source,
            config=loaded.config,
            revision=loaded.place.commit,
            dtype=dtype,
            trust_remote_code=trust,
            use_safetensors=True,  # a pickle runs code when it is read
        )
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, SafetensorError) as error:
        raise unavailable(source, str(error) or type(error).__name__) from error
    return model.eval()
