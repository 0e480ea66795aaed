"""A causal language model of transformers as files: configuration and tokenizer first, weights when they are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from music_evals.errors import importing
from music_evals.lyrics.model_files import ModelPlace, find_model, has_file, unavailable

if TYPE_CHECKING:
    import torch

__all__ = ["LanguageModel", "load_language_model", "read_weights"]


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
