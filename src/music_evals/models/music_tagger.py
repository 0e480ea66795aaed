"""Music tagger: a pooled vector of a music encoder in, tags of ten dimensions out, one network a group of annotators.

MuChin (Wang et al., IJCAI 2024), section 3.3 and Appendix H, tests what encoders know with it. The network is that of
the released code (`und_eval/models/mlp.py`): five linear layers with ReLU between them, hidden size 8,192, no dropout,
no normalisation; the sigmoid is outside.

Published sizes: 14,162 outputs for amateurs and 9,691 for professionals; 287 to 475 million parameters a group.
"""

# Annotations stay real objects here: the Hub mixin reads the type of `config` from the signature.
import contextlib
import dataclasses
import io
import itertools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from huggingface_hub import PyTorchModelHubMixin, hf_hub_download
from huggingface_hub.errors import EntryNotFoundError
from torch import Tensor, nn

from music_evals.annotations import GROUPS
from music_evals.audio.io import AUDIO_SUFFIXES
from music_evals.errors import (
    InvalidInputError,
    ModelUnavailableError,
    NoDataError,
    UnknownNameError,
    UnreadableFileError,
)
from music_evals.files import write_atomically
from music_evals.models.encoders.audio import Extraction, Source
from music_evals.models.encoders.music import EncoderSettings, load_music_encoder
from music_evals.models.encoders.precomputed import FEATURES_SUFFIX
from music_evals.models.layers.saving import check_config, check_sizes, fetching, save_tensors
from music_evals.models.tag_vocabulary import TagVocabulary
from music_evals.models.training.recipe import from_mapping
from music_evals.numerics import one_thread
from music_evals.protocols.settings import check_rules, check_type, check_types
from music_evals.repositories import MODELS, find_repository

__all__ = ["VOCABULARY", "MusicTagger", "MusicTaggerConfig", "probe_network"]

VOCABULARY = "vocabulary.json"
"""Name of the file with the tags, beside config.json and model.safetensors."""

_WEIGHTS = "model.safetensors"
_N_HIDDEN = 4

Features = npt.NDArray[np.float32]


@dataclasses.dataclass(frozen=True)
class MusicTaggerConfig:
    """Sizes, encoder and default decoding; the defaults are the published ones for MERT-95M.

    A value outside its range raises `InvalidInputError`, a name that does not exist `UnknownNameError`.

    Parameters
    ----------
    model_type
        Always ``"music_tagger"``; tells a reader of config.json which class to load.
    input_size
        Length of the encoder's vector.
    hidden_size
        Of all four hidden layers.
    groups
        Groups of annotators, out of `annotations.GROUPS`.
    encoder
        Fields of `encoders.music.EncoderSettings`; or its `name` alone.
    threshold
        Tags above this probability are given; 0..1. The paper does not say which it took.
    """

    model_type: str = "music_tagger"
    input_size: int = 768
    hidden_size: int = 8192
    groups: tuple[str, ...] = GROUPS
    encoder: dict[str, Any] = dataclasses.field(default_factory=lambda: {"name": "mert-95m"})
    threshold: float = 0.5

    def __post_init__(self) -> None:
        check_types(self)
        object.__setattr__(self, "groups", tuple(self.groups))  # JSON and YAML hold lists
        for group in self.groups:
            if group not in GROUPS:
                raise UnknownNameError("group of annotators", str(group), GROUPS)
        once = bool(self.groups) and len(set(self.groups)) == len(self.groups)
        check_rules(self, {f"groups must name one or both of {', '.join(GROUPS)}, each once": once})
        check_config(self, at_least_one=("input_size", "hidden_size"))
        _check_threshold(self.threshold)
        _ = self.encoder_settings

    @property
    def encoder_settings(self) -> EncoderSettings:
        """What the encoder is."""
        return from_mapping(EncoderSettings, self.encoder, "encoder setting")


def _check_threshold(threshold: float) -> None:
    check_type("threshold", threshold, float)
    if not 0 <= threshold <= 1:
        raise InvalidInputError(f"threshold must lie in 0..1, got {threshold}")


def probe_network(input_size: int, hidden_size: int, output_size: int) -> nn.Sequential:
    """Return five linear layers with ReLU between them, from (batch, input_size) to logits (batch, output_size)."""
    sizes = [input_size, *[hidden_size] * _N_HIDDEN]
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(hidden_size, output_size))


class MusicTagger(
    nn.Module,
    PyTorchModelHubMixin,
    library_name="music_evals",
    license="apache-2.0",
    tags=["music", "audio", "music-tagging"],
):
    """Probes on a frozen music encoder; a `protocols.Tagger`.

    Parameters
    ----------
    config
        Sizes, encoder and default decoding.
    vocabulary
        The tags of each group of the config.
    threshold
        Overrides `config.threshold`.
    extractor
        Turns recordings into vectors; by default the encoder of the config is loaded at the first recording.
    trust_remote_code, features_cache, device
        For that encoder, as in `encoders.music.load_music_encoder`. That code of another repository may run is never
        taken from a file: it must be said here.

    Attributes
    ----------
    name
        ``"music_tagger:<encoder>"``; with another model of its class in square brackets, and with the threshold where
        that is not the default of the config.
    groups, suffixes
        See `protocols.Tagger`.

    Raises
    ------
    InvalidInputError
        Groups of config and vocabulary differ, a threshold outside 0..1, or an encoder of another size.
    """

    config_class = MusicTaggerConfig

    def __init__(
        self,
        config: MusicTaggerConfig,
        vocabulary: TagVocabulary,
        *,
        threshold: float | None = None,
        extractor: Extraction | None = None,
        trust_remote_code: bool = False,
        features_cache: str | os.PathLike[str] | bool = True,
        device: str | None = None,
    ) -> None:
        super().__init__()
        check_sizes(config)
        self.config, self.vocabulary = config, vocabulary
        self.threshold = config.threshold if threshold is None else threshold
        _check_threshold(self.threshold)
        self._run = {"trust_remote_code": trust_remote_code, "cache": features_cache, "device": device}
        self._encoder: Extraction | None = None
        if set(vocabulary.groups) != set(config.groups):
            raise InvalidInputError(
                f"the config is for {', '.join(config.groups)}, the vocabulary for {', '.join(vocabulary.groups)}"
            )
        if extractor is not None:
            self._use(extractor)
        self.probes = nn.ModuleDict(
            {
                group: probe_network(config.input_size, config.hidden_size, vocabulary.size(group))
                for group in vocabulary.groups
            }
        )

    @property
    def name(self) -> str:
        """System id."""
        encoder = self.config.encoder_settings
        pooling = "" if encoder.pooling == "mean" else f"-{encoder.pooling}"
        other = f"[{Path(encoder.model).name}]" if encoder.model else ""
        own = "" if self.threshold == self.config.threshold else f":{self.threshold:g}"
        return f"{self.config.model_type}:{encoder.name}{other}{pooling}{own}"

    @property
    def groups(self) -> tuple[str, ...]:
        """Groups of annotators that it was trained on."""
        return self.vocabulary.groups

    @property
    def suffixes(self) -> frozenset[str]:
        """Endings of the files that `tag` reads."""
        precomputed = self.config.encoder_settings.info.kind == "precomputed"
        return frozenset({FEATURES_SUFFIX}) if precomputed else AUDIO_SUFFIXES

    @property
    def encoder(self) -> Extraction:
        """The encoder, loaded at the first use."""
        if self._encoder is None:
            self._use(load_music_encoder(self.config.encoder_settings, **self._run))  # type: ignore[arg-type]
        assert self._encoder is not None
        return self._encoder

    def _use(self, encoder: Extraction) -> None:
        if encoder.size != self.config.input_size:
            raise InvalidInputError(
                f"the encoder {encoder.name!r} gives {encoder.size} numbers, the tagger takes {self.config.input_size}"
            )
        self._encoder = encoder

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        """Return group -> logits (batch, outputs), in the order of the vocabulary, of vectors (batch, input_size)."""
        return {group: probe(features) for group, probe in self.probes.items()}

    def probabilities(self, features: Features) -> dict[str, Features]:
        """Return group -> probability of every tag, float32, shape (n, outputs), 0..1, of vectors (n, input_size).

        Features of another shape raise `InvalidInputError`.
        """
        if features.ndim != 2 or features.shape[1] != self.config.input_size:
            raise InvalidInputError(f"expected features of shape (n, {self.config.input_size}), got {features.shape}")
        weight = next(self.parameters())
        with torch.inference_mode(), one_thread():
            logits = self(torch.from_numpy(features).to(weight.device, weight.dtype))
        return {group: values.sigmoid().float().cpu().numpy() for group, values in logits.items()}

    def tag_features(self, features: Features) -> list[dict[str, dict[str, list[str]]]]:
        """Return group -> dimension -> tags of each vector, shape (n, input_size); see `TagVocabulary.decode`."""
        probabilities = self.probabilities(features)
        return [
            {group: self.vocabulary.decode(group, probabilities[group][row], self.threshold) for group in self.groups}
            for row in range(len(features))
        ]

    def tag(self, path: Source) -> Mapping[str, Mapping[str, list[str]]]:
        """Return group -> dimension -> tags of one recording: a file, or what else the encoder takes.

        Raises as `encoders.music.MusicEncoder.features` does, and `ModelUnavailableError` or `MissingBackendError`
        where the encoder cannot be loaded.
        """
        return self.tag_features(self.encoder.features(path)[None])[0]

    def describe(self) -> Mapping[str, Any]:
        """Return what decides its tags besides its own files: the threshold, and of the encoder all that does.

        The encoder is loaded, as by `tag`: which commit it is at is not known before.
        """
        return {"threshold": self.threshold, "encoder": dict(self.encoder.about)}

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        threshold: float | None = None,
        extractor: Extraction | None = None,
        trust_remote_code: bool = False,
        features_cache: str | os.PathLike[str] | bool = True,
        device: str | None = None,
        **options: Any,
    ) -> Self:
        """Load a tagger from the folder that training wrote, or from the Hub.

        Parameters
        ----------
        pretrained_model_name_or_path
            Folder, name of a model of the package, or id on the Hub.
        threshold, extractor, trust_remote_code, features_cache, device
            As of the class.
        options
            `revision`, `token`, `cache_dir` ... of `huggingface_hub`.

        Raises
        ------
        NoDataError
            A folder without config, vocabulary or weights: not trained.
        UnreadableFileError
            Weights or vocabulary are damaged or do not fit.
        ModelUnavailableError
            Not to be had from the Hub.
        UnknownNameError
            There is no such folder, and it has not the form of an id.
        """
        # all of them are passed on: what is not, the mixin takes from config.json, where a stranger may have put it
        arguments: dict[str, Any] = {
            "threshold": threshold,
            "extractor": extractor,
            "trust_remote_code": trust_remote_code,
            "features_cache": features_cache,
            "device": device,
        }
        place, _ = find_repository(os.fspath(pretrained_model_name_or_path), MODELS, "model")
        with fetching(place):
            model: Self = super().from_pretrained(place, **arguments, **options)
        return model

    def _save_pretrained(self, save_directory: Path) -> None:
        """Write config.json, vocabulary.json and the weights in single precision; each file whole or not at all."""
        save_tensors(save_directory / _WEIGHTS, dict(self.state_dict()), {"format": "pt"})
        write_atomically(save_directory / VOCABULARY, self.vocabulary.to_json().encode())
        config = json.dumps(dataclasses.asdict(self.config), indent=2, sort_keys=True) + "\n"
        write_atomically(save_directory / "config.json", config.encode())

    @classmethod
    def _from_pretrained(cls, *, model_id: str, strict: bool = True, **options: Any) -> Self:
        """Load config, vocabulary and weights; every tensor must be there."""
        from safetensors import SafetensorError

        if not isinstance(options.get("config"), MusicTaggerConfig):
            raise NoDataError(
                f"{model_id} holds no config.json of a music_tagger; name the folder that training wrote to"
            )
        folder = Path(model_id)
        if folder.is_dir() and not (folder / _WEIGHTS).exists():
            raise NoDataError(
                f"{model_id} holds no {_WEIGHTS}; train it first: music-evals train {model_id}/train.yaml"
            )
        options.pop("vocabulary", None)  # of a config.json that is not ours
        tags = folder / VOCABULARY
        if folder.is_dir() and not tags.exists():
            raise NoDataError(
                f"{model_id} holds no {VOCABULARY}; train it first: music-evals train {model_id}/train.yaml"
            )
        if not folder.is_dir():
            hub: dict[str, Any] = {
                name: options[name] for name in ("revision", "cache_dir", "local_files_only", "token")
            }
            try:
                tags = Path(hf_hub_download(model_id, VOCABULARY, **hub))
            except (EntryNotFoundError, OSError) as error:
                raise ModelUnavailableError(
                    f"cannot get {VOCABULARY} of {model_id!r} ({error}); name a folder, or fetch it: hf download "
                    f"{model_id}"
                ) from error
        vocabulary = TagVocabulary.from_json(tags.read_bytes(), f"{model_id}/{VOCABULARY}")
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # the mixin prints; stdout is for data
                model: Self = super()._from_pretrained(
                    model_id=model_id, strict=strict, vocabulary=vocabulary, **options
                )
        except (SafetensorError, RuntimeError) as error:
            raise UnreadableFileError(
                f"the weights in {model_id} do not fit its config.json and {VOCABULARY}, or are damaged: {error}"
            ) from error
        return model.eval()
