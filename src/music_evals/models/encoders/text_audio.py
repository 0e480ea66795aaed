"""Encoders of texts and recordings in one space: CLAP of transformers, MuQ-MuLan of the package `muq`.

A recording longer than a window is cut into windows one behind the other, the last of which ends where the recording
does; its vector is the mean of their unit vectors. A shorter one is repeated until it fills the window.
"""

from __future__ import annotations

import abc
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch

from music_evals.errors import InvalidAudioError, InvalidInputError, MissingBackendError, ModelUnavailableError
from music_evals.lyrics.model_files import ModelPlace, choose_device, dtype_of, has_file
from music_evals.models.encoders.networks import Origin, fetch, import_transformers, load_class, read_configuration
from music_evals.numerics import one_thread
from music_evals.protocols import DEFAULT_TEXT_AUDIO_ENCODER

__all__ = ["ClapEncoder", "MulanEncoder", "load_text_audio_encoder"]

SHORTEST_SEC: Final = 0.5  # a window of 10 s repeats it 20 times; what is shorter is a click
TEXT_TOKENS: Final = 77  # as LAION's CLAP was trained and as papers compute it; what comes later does not count
WEIGHTS: Final = "model.safetensors"
Floats = npt.NDArray[np.float32]


class _WindowedEncoder(abc.ABC):
    """What both have in common: windows, and the mean over them."""

    rate: int
    about: Mapping[str, Any]

    def __init__(self, about: Mapping[str, Any], longest_sec: float, window_sec: float | None) -> None:
        window = longest_sec if window_sec is None else window_sec
        if not SHORTEST_SEC <= window <= longest_sec:
            raise InvalidInputError(f"`window_sec` must lie in {SHORTEST_SEC:g} to {longest_sec:g} s, got {window:g}")
        self.about = {**about, "window_sec": float(window)}

    @abc.abstractmethod
    def _encode_window(self, samples: Floats) -> Any: ...

    @abc.abstractmethod
    def _encode_text(self, text: str) -> Any: ...

    @one_thread()
    def encode_texts(self, texts: Sequence[str]) -> Floats:
        """Return vectors of shape (n, d), float32."""
        # alone: padding to the length of others would change the last digits
        with torch.inference_mode():
            return np.stack([_unit(self._encode_text(text)) for text in texts])

    @one_thread()
    def encode_audio(self, samples: Floats) -> Floats:
        """Return the mean of the unit vectors of windows of mono samples, shape (d,), float32.

        Raises `InvalidAudioError` under half a second.
        """
        with torch.inference_mode():
            vectors = [_unit(self._encode_window(window)) for window in self._windows(samples)]
        mean: Floats = np.mean(vectors, axis=0)
        return mean

    def _windows(self, samples: Floats) -> list[Floats]:
        size, seconds = round(self.about["window_sec"] * self.rate), len(samples) / self.rate
        if seconds < SHORTEST_SEC:
            raise InvalidAudioError(f"{seconds:.3f} s are too short; an encoder takes {SHORTEST_SEC:g} s and more")
        starts = [*range(0, len(samples) - size, size), max(len(samples) - size, 0)]
        return [samples[start : start + size] for start in starts]


class ClapEncoder(_WindowedEncoder):
    """CLAP, by the classes of transformers."""

    def __init__(self, model: Any, processor: Any, about: Mapping[str, Any], window_sec: float | None = None) -> None:
        self.model, self.processor = model, processor
        self.rate = processor.feature_extractor.sampling_rate
        super().__init__(about, processor.feature_extractor.max_length_s, window_sec)

    def _audio_side(self, samples: Floats, **options: bool) -> Any:
        # a window is never longer than the network's own, so that none of its random crops is taken
        inputs = self.processor.feature_extractor(samples, sampling_rate=self.rate, return_tensors="pt")
        features = inputs["input_features"].to(self.model.device, self.model.dtype)  # (1, 1 or 4, frames, mel bins)
        return self.model.audio_model(features, is_longer=inputs["is_longer"].to(self.model.device), **options)

    def _encode_window(self, samples: Floats) -> Any:
        return self.model.audio_projection(self._audio_side(samples).pooler_output)[0]

    def _encode_text(self, text: str) -> Any:
        tokens = self.processor.tokenizer(text, truncation=True, max_length=TEXT_TOKENS, return_tensors="pt")
        ids = tokens["input_ids"].to(self.model.device)  # of one text: nothing is padded, nothing masked
        return self.model.text_projection(self.model.text_model(ids).pooler_output)[0]

    def layers(self, samples: Floats) -> Iterator[Sequence[Floats]]:
        """Yield what each stage of the audio side gives for a window, shape (positions, channels), float32."""
        for window in self._windows(samples):
            with one_thread(), torch.inference_mode():
                # the first is the embedding of patches; the others (1, channels, height, width)
                states = self._audio_side(window, output_hidden_states=True).hidden_states[1:]
                stages = [state[0].flatten(1).T.float().cpu().numpy() for state in states]
            yield stages


class MulanEncoder(_WindowedEncoder):
    """MuQ-MuLan, by its package."""

    def __init__(self, model: Any, about: Mapping[str, Any], window_sec: float | None = None) -> None:
        self.model, self.rate = model, model.sr
        super().__init__(about, model.clip_secs, window_sec)

    def _encode_window(self, samples: Floats) -> Any:
        clip = np.resize(samples, self.model.sr * self.model.clip_secs)  # repeated
        return self.model(wavs=torch.from_numpy(clip)[None].to(self.model.device))[0]

    def _encode_text(self, text: str) -> Any:
        return self.model(texts=[text])[0]


def load_text_audio_encoder(
    name: str = DEFAULT_TEXT_AUDIO_ENCODER,
    *,
    revision: str | None = None,
    window_sec: float | None = None,
    precision: str = "fp32",
    device: str | None = None,
    trust_remote_code: bool = False,
) -> ClapEncoder | MulanEncoder:
    """Load an encoder of texts and recordings.

    Parameters
    ----------
    name
        Hub id or folder of a CLAP of transformers, or of MuQ-MuLan (``"OpenMuQ/MuQ-MuLan-large"``).
    revision
        Commit, tag or branch of a Hub id; None is the newest. `about` has the commit, or the hash of a folder.
    window_sec
        Length of windows; None is the longest that the network takes at once, 10 s for both.
    precision
        ``"fp32"``; ``"bf16"`` or ``"fp16"`` for CLAP on a GPU that computes in it.
    device
        As ``"cpu"`` or ``"cuda:1"``; None takes a GPU where there is one.
    trust_remote_code
        True lets the package `muq` load the parts of MuQ-MuLan, as it does: at their newest, with code of their own.

    Raises
    ------
    ModelUnavailableError
        No such model, weights that cannot be had or are pickled, or code that is not trusted; no other is taken.
    MissingBackendError
        transformers (extra ``models``) or `muq` is not installed.
    InvalidInputError, UnknownNameError
        A window, a precision or a device that is not there.
    """
    chosen = str(choose_device(device))
    dtype = dtype_of(precision, chosen)
    transformers = import_transformers()
    origin = Origin(name, revision, name, trust_remote_code)
    values, pinned, identity = read_configuration(transformers, origin)
    about = {"name": name, "revision": identity, "precision": precision}
    if "mulan" in values:
        if precision != "fp32":
            raise InvalidInputError(f"MuQ-MuLan computes in fp32, got {precision}")
        return MulanEncoder(_load_mulan(pinned).to(chosen).eval(), about, window_sec)
    if values.get("model_type") != "clap":
        raise ModelUnavailableError(f"{name!r} is neither a CLAP of transformers nor MuQ-MuLan; name one that is")
    _require_weights(pinned)
    model = load_class(transformers.ClapModel, pinned, None, dtype=dtype, use_safetensors=True)
    kind = transformers.ClapProcessor
    processor = fetch(name, lambda: kind.from_pretrained(name, revision=pinned.revision))
    return ClapEncoder(model.to(chosen), processor, about, window_sec)


def _require_weights(pinned: Origin) -> None:
    place = ModelPlace(pinned.revision, "", here=False)
    if not has_file(pinned.model, place, WEIGHTS):
        raise ModelUnavailableError(
            f"{pinned.model!r} has no {WEIGHTS}, and pickled weights are not loaded; make it once in a folder of your "
            "own by `music_evals.editing.conversion.convert`, and name that folder"
        )


def _load_mulan(pinned: Origin) -> Any:
    if importlib.util.find_spec("muq") is None:
        raise MissingBackendError("muq", "", "MuQ-MuLan", install="pip install muq")
    if not pinned.trust_remote_code:
        raise ModelUnavailableError(
            f"the package muq gives the parts of {pinned.model!r} leave to run code of their own; read that code, and "
            "pass trust_remote_code=True to let it"
        )
    _require_weights(pinned)
    library = importlib.import_module("muq")
    return fetch(pinned.model, lambda: library.MuQMuLan.from_pretrained(pinned.model, revision=pinned.revision))


def _unit(vector: torch.Tensor) -> Floats:
    scaled: Floats = torch.nn.functional.normalize(vector.float(), dim=-1).cpu().numpy()
    return scaled
