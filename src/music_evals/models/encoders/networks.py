"""The networks behind the encoders, loaded through transformers, each with its way from samples to one vector."""

from __future__ import annotations

import math
import pickle  # for the name of its error
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from music_evals.errors import (
    InvalidAudioError,
    InvalidInputError,
    ModelUnavailableError,
    PaddedRecordingWarning,
    importing,
)
from music_evals.lyrics.model_files import find_model, unavailable
from music_evals.numerics import one_thread

Samples = npt.NDArray[np.float32]
Value = TypeVar("Value")

# Of MERT's configuration: what its own code does beyond HuBERT, and the value that switches it off. Its
# `attention_relax` is no such thing: it subtracts the largest score of a row before the softmax, which changes nothing.
_MERT_EXTRAS: Mapping[str, Callable[[Any], bool]] = {
    "feature_extractor_cqt": lambda value: value is False,
    "deepnorm": lambda value: value is False,
}
_OF_THE_CLASS = ("model_type", "architectures", "auto_map", "transformers_version")


class Origin(NamedTuple):
    """Where a network comes from."""

    model: str  # id on the Hub, or a folder
    revision: str | None  # branch, tag or commit; None is the newest
    processor: str  # id or folder of the preprocessor's settings
    trust_remote_code: bool  # whether code of the model's own repository may run here


class _Window(NamedTuple):
    samples: Samples  # (channels, n)
    n_frames: int  # that count; the others are padding


class Transformer:
    """A network over the waveform: HuBERT, MERT, Data2Vec."""

    channels = 1

    def __init__(
        self, model: Any, extractor: Any, *, layer: int | None, window_seconds: float | None, pad: bool = True
    ) -> None:
        self.model, self.extractor, self.pad = model, extractor, pad
        self.rate: int = extractor.sampling_rate
        self.size: int = model.config.hidden_size
        self.stride = math.prod(model.config.conv_stride)  # samples a frame
        self.window = None if window_seconds is None else round(window_seconds * self.rate)
        n_layers = model.config.num_hidden_layers
        self.layer = n_layers if layer is None else layer
        if not 0 <= self.layer <= n_layers:
            raise InvalidInputError(f"layer must lie in 0..{n_layers}, got {layer}")
        if self.window is not None and (self.window < self.stride or self.window % self.stride):
            raise InvalidInputError(
                f"a window of {self.window} samples is no whole number of frames of {self.stride} samples"
            )

    @one_thread()
    def pool(self, samples: Samples, batch_size: int) -> Samples:
        """Return the mean over time, float32, shape (size,), of samples of shape (1, n)."""
        total, n_frames = torch.zeros(self.size, dtype=torch.float64), 0
        for batch in _batches(self._windows(samples[0]), batch_size):
            mono = [window.samples for window in batch]
            inputs = self.extractor(mono, sampling_rate=self.rate, return_tensors="pt", padding=True)
            with torch.inference_mode():
                values = inputs["input_values"].to(self.model.device)
                states = self.model(values, output_hidden_states=True)["hidden_states"]
            for row, window in zip(states[self.layer], batch, strict=True):  # (frames, size)
                frames = row[: window.n_frames]
                total += frames.double().sum(0).cpu()
                n_frames += len(frames)
        return (total / n_frames).float().numpy()

    def _windows(self, mono: Samples) -> Iterator[_Window]:
        if len(mono) < self.stride:
            raise InvalidAudioError(
                f"{len(mono) / self.rate:.3f} s are shorter than one frame ({self.stride} samples); leave it out"
            )
        if self.window is None:
            yield _Window(mono, len(mono))  # there are fewer frames than samples: all are kept
            return
        if self.pad and len(mono) < self.window / 2:
            message = (
                f"a recording of {len(mono) / self.rate:.1f} s is padded to {self.window / self.rate:g} s, as in the "
                "published features, and the network sees the silence; pad=False encodes it alone"
            )
            warnings.warn(message, PaddedRecordingWarning, stacklevel=2)
        for start in range(0, len(mono), self.window):
            part = mono[start : start + self.window + self.stride]
            n_frames = min(len(mono) - start, self.window) // self.stride
            if n_frames:
                length = self.window if self.pad else n_frames * self.stride
                yield _Window(np.pad(part, (0, max(0, length + self.stride - len(part)))), n_frames)


class Encodec:
    """The quantised latents of EnCodec."""

    def __init__(self, model: Any, *, bandwidth: float, pooling: str) -> None:
        self.model, self.bandwidth, self.pooling = model, bandwidth, pooling
        self.rate: int = model.config.sampling_rate
        self.channels: int = model.config.audio_channels
        if bandwidth not in model.config.target_bandwidths:
            raise InvalidInputError(
                f"bandwidth must be one of {model.config.target_bandwidths} kbit/s, got {bandwidth}"
            )
        if pooling == "muchin" and model.config.chunk_length is None:
            raise InvalidInputError("pooling='muchin' needs a model that works in segments, as facebook/encodec_48khz")

    @property
    def size(self) -> int:
        """Length of the vector: 128, or 128 x 150 with the published indexing."""
        config = self.model.config
        frames = math.ceil(config.chunk_length / config.hop_length) if self.pooling == "muchin" else 1
        return int(config.codebook_dim * frames)

    @one_thread()
    def pool(self, samples: Samples, batch_size: int) -> Samples:
        """Return one vector, float32, shape (size,), of samples of shape (channels, n)."""
        total, n = torch.zeros(self.size, dtype=torch.float64), 0
        for batch in _batches(self._windows(samples), batch_size):
            with torch.inference_mode():
                # segments on their own; `EncodecModel.encode` does so too, and since transformers 5 adds one more
                values = torch.from_numpy(np.stack([window.samples for window in batch])).to(self.model.device)
                if self.model.config.normalize:  # (batch, channels, length)
                    values = values / (values.mean(1, keepdim=True).pow(2).mean(-1, keepdim=True).sqrt() + 1e-8)
                codes = self.model.quantizer.encode(self.model.encoder(values), self.bandwidth)
                if self.pooling == "muchin":
                    # (codebooks, frames) of each, taken for one codebook's (batch, frames): (codebooks, dim x frames)
                    segments = codes.transpose(0, 1)
                    parts = [self.model.quantizer.decode(segment[None]).flatten(1) for segment in segments]
                else:
                    latents = self.model.quantizer.decode(codes)  # (batch, size, frames)
                    parts = [row[:, : window.n_frames].T for row, window in zip(latents, batch, strict=True)]
            for part in parts:  # (rows, size)
                total += part.double().sum(0).cpu()
                n += len(part)
        return (total / n).float().numpy()

    def _windows(self, samples: Samples) -> Iterator[_Window]:
        config, n = self.model.config, samples.shape[1]
        length = config.chunk_length or n
        for start in range(0, n, config.chunk_stride or n):
            part = samples[:, start : start + length]
            n_frames = math.ceil(part.shape[1] / config.hop_length)
            yield _Window(np.pad(part, ((0, 0), (0, length - part.shape[1]))), n_frames)


def _batches(windows: Iterator[_Window], size: int) -> Iterator[list[_Window]]:
    """Yield windows of one length together."""
    batch: list[_Window] = []
    for window in windows:
        if batch and (len(batch) == size or window.samples.shape != batch[0].samples.shape):
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def load_mert(origin: Origin) -> tuple[Any, Any, str]:
    """Load MERT or another HuBERT; return the network, its feature extractor, and what identifies the two."""
    # MERT's repository brings code of its own. Where the configuration switches everything off that this code adds to
    # HuBERT, as those of both sizes of MERT-v1 do, the weights are loaded into transformers' own class, and every
    # tensor must find its place there; otherwise that code must be trusted.
    # All is read at one commit, whatever happens on the Hub in between.
    transformers = import_transformers()
    values, pinned, identity = read_configuration(transformers, origin)
    if origin.trust_remote_code and "auto_map" in values:
        model = _load_remote(transformers, pinned)
    else:
        extras = [name for name, off in _MERT_EXTRAS.items() if name in values and not off(values[name])]
        if extras or values.get("model_type") not in {"hubert", "mert_model", "music2vec"}:
            reason = f"it uses {', '.join(extras)}" if extras else f"its model_type is {values.get('model_type')!r}"
            raise ModelUnavailableError(
                f"{origin.model!r} cannot be loaded as HuBERT: {reason}. Its repository brings code that can; read "
                "that code, and pass trust_remote_code=True to run it"
            )
        config = transformers.HubertConfig(**{k: v for k, v in values.items() if k not in _OF_THE_CLASS})
        model = load_class(transformers.HubertModel, pinned, config)
    extractor, other = _load_extractor(transformers, pinned)
    return model, extractor, identity + other


def load_data2vec(origin: Origin) -> tuple[Any, Any, str]:
    """Load music2vec or another Data2Vec model; see `load_mert`."""
    transformers = import_transformers()
    _, pinned, identity = read_configuration(transformers, origin)
    model = load_class(transformers.Data2VecAudioModel, pinned, None)
    extractor, other = _load_extractor(transformers, pinned)
    return model, extractor, identity + other


def load_encodec(origin: Origin) -> tuple[Any, str]:
    """Load EnCodec; see `load_mert`."""
    transformers = import_transformers()
    _, pinned, identity = read_configuration(transformers, origin)
    return load_class(transformers.EncodecModel, pinned, None), identity


def import_transformers() -> Any:
    """Return the module `transformers`."""
    with importing("models", "a music encoder"):
        import transformers
    return transformers


def fetch(model: str, load: Callable[[], Value]) -> Value:
    """Return what `load` does; what goes wrong is a `ModelUnavailableError`."""
    from safetensors import SafetensorError

    try:
        return load()
    # missing or offline; a configuration that fits no class; weights of other shapes; weights that are cut
    except (OSError, ValueError, RuntimeError, SafetensorError, pickle.UnpicklingError, EOFError) as error:
        raise unavailable(model, " ".join(str(error).split()) or type(error).__name__) from error


def read_configuration(transformers: Any, origin: Origin) -> tuple[dict[str, Any], Origin, str]:
    """Return what config.json says, the origin at the commit that it was read at, and what identifies that."""
    place = find_model(origin.model, origin.revision, "config.json")
    pinned = origin._replace(revision=place.commit)

    def read() -> dict[str, Any]:
        kind = transformers.PreTrainedConfig
        values: dict[str, Any] = kind.get_config_dict(pinned.model, revision=pinned.revision)[0]
        if not values:
            raise OSError("it holds no config.json.")
        return values

    return fetch(origin.model, read), pinned, place.identity


def load_class(kind: Any, origin: Origin, config: Any, **options: Any) -> Any:
    """Load weights into a class of transformers, in single precision if `options` say no other; every tensor fits."""
    options = {"dtype": torch.float32, **options} | ({} if config is None else {"config": config})

    def load() -> tuple[Any, Mapping[str, Any]]:
        loaded: tuple[Any, Mapping[str, Any]] = kind.from_pretrained(
            origin.model, revision=origin.revision, output_loading_info=True, **options
        )
        return loaded

    model, info = fetch(origin.model, load)
    wrong = sorted(str(key) for name in ("missing_keys", "mismatched_keys") for key in info[name])
    wrong = [key for key in wrong if key != "masked_spec_embed"]  # is used in training only
    if config is not None:  # another class than the one that wrote the weights: nothing may be left over either
        wrong += sorted(info["unexpected_keys"])
    if wrong:
        raise ModelUnavailableError(
            f"the weights of {origin.model!r} do not fit {kind.__name__}: {', '.join(wrong[:5])}; get a whole copy"
        )
    return model.eval()


def _load_remote(transformers: Any, origin: Origin) -> Any:
    def load() -> Any:
        trusted = {"revision": origin.revision, "trust_remote_code": True}
        config = transformers.AutoConfig.from_pretrained(origin.model, **trusted)
        if not hasattr(config, "conv_pos_batch_norm"):
            config.conv_pos_batch_norm = False  # HuBERT asks for it since transformers 4.48; MERT's own code is older
        return transformers.AutoModel.from_pretrained(origin.model, config=config, dtype=torch.float32, **trusted)

    try:
        return fetch(origin.model, load).eval()
    except (ImportError, AttributeError, TypeError) as error:  # code that was written for another transformers
        raise ModelUnavailableError(
            f"the code of {origin.model!r} does not run with transformers {transformers.__version__} "
            f"({type(error).__name__}: {error}); install what it asks for, or leave trust_remote_code away"
        ) from error


def _load_extractor(transformers: Any, pinned: Origin) -> tuple[Any, str]:
    """Return the feature extractor, and what identifies it where it comes from a place of its own."""
    name, commit, identity = pinned.processor, pinned.revision, ""
    if name != pinned.model:  # a revision of the model says nothing of another repository
        place = find_model(name, None, "preprocessor_config.json")
        commit, identity = place.commit, f"+{place.identity}"
    kind = transformers.Wav2Vec2FeatureExtractor
    return fetch(name, lambda: kind.from_pretrained(name, revision=commit)), identity
