"""What the benchmark may know of encoders, taggers and writers of lyrics, and those that ship with the package."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt


@runtime_checkable
class TextEncoder(Protocol):
    """A model that turns texts into vectors whose inner products are cosines; records say its name and revision."""

    name: str
    revision: str  # empty where the encoder has none

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return unit vectors, shape (n, dimensions), float32, in the order of the texts."""
        ...


class Written(NamedTuple):
    """What a language model answered."""

    text: str
    prompt_tokens: int | None = None
    """Tokens that were read; None where the model does not say."""
    completion_tokens: int | None = None
    """Tokens that were written; None where the model does not say."""
    cut_off: bool | None = None
    """Whether the answer ended because it may be no longer; None where the model does not say."""


@runtime_checkable
class LyricWriter(Protocol):
    """A language model that answers a prompt.

    What else it may have is used where it is there: `batch_size`, prompts in a call; `concurrency`, calls at once, from
    threads; ``close()``, let go what it holds, until it is asked again; ``cancel()``, callable from another thread: do
    not try again what has failed, until it is closed.

    Attributes
    ----------
    name
        System id in records and tables.
    deterministic
        True when `write` does not use the seed: one seed is enough.
    """

    name: str
    deterministic: bool

    def write(self, prompts: Sequence[str], *, seed: int) -> list[Written]:
        """Return one answer a prompt, in their order."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """Return what decides its answers, for the receipt: model id, revision, decoding settings; never a key."""
        ...


@runtime_checkable
class Tagger(Protocol):
    """A model that describes a recording by tags.

    One that reads files made from recordings has `suffixes`, the endings of these in lower case; they are looked for in
    place of recordings.

    Attributes
    ----------
    name
        System id in records and tables.
    groups
        Groups of annotators that it was trained on, out of `annotations.GROUPS`.
    """

    name: str
    groups: tuple[str, ...]

    def tag(self, path: str | os.PathLike[str]) -> Mapping[str, Mapping[str, list[str]]]:
        """Return group -> dimension -> tags of one recording."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """Return what decides its tags besides its own files, as JSON values: encoder, commit, version, threshold."""
        ...


@runtime_checkable
class MusicEncoder(Protocol):
    """A model that turns a recording into one vector.

    Attributes
    ----------
    name
        What records say.
    size
        Length of the vector.
    about
        What decides the numbers besides the recording, as JSON values: settings, version, commit or hash of the files.
    """

    name: str
    size: int
    about: Mapping[str, Any]

    def features(self, source: str, /) -> npt.NDArray[np.float32]:
        """Return the vector of a recording, float32, shape (size,); raises where it has none."""
        ...


class TextAudioEncoder(Protocol):
    """A model that turns texts and recordings into vectors of one space, float32."""

    about: Mapping[str, Any]  # what decides the numbers, as JSON: name, revision, window in seconds, precision
    rate: int  # of its recordings, in Hz

    def encode_texts(self, texts: Sequence[str], /) -> npt.NDArray[np.float32]:
        """Return vectors of shape (n, d), each as if its text were alone."""
        ...

    def encode_audio(self, samples: npt.NDArray[np.float32], /) -> npt.NDArray[np.float32]:
        """Return the vector of mono samples, shape (d,); raises where they are too short."""
        ...


@runtime_checkable
class LayeredEncoder(TextAudioEncoder, Protocol):
    """One that hands out the layers of its audio side."""

    def layers(self, samples: npt.NDArray[np.float32], /) -> Iterator[Sequence[npt.NDArray[np.float32]]]:
        """Yield the layers of each window, shape (positions, channels)."""
        ...


TAGGERS: dict[str, str] = {"music_tagger": "music_evals.models.music_tagger:MusicTagger"}
"""Model type -> ``module:class`` of every `Tagger`; each has `from_pretrained(folder)`."""

MUSIC_ENCODERS: dict[str, str] = {
    "audio-statistics": "music_evals.audio.statistics:make_encoder",
    **dict.fromkeys(
        ("mert-95m", "mert-330m", "music2vec", "encodec"), "music_evals.models.encoders.music:make_encoder"
    ),
}
"""Name -> ``module:function`` of every `MusicEncoder`.

The function takes the name, and by keyword ``model`` (a folder or Hub id in place of the named one), ``revision``,
``device`` and ``trust_remote_code``.
"""

MUSIC_ENCODER_TYPES: dict[str, str] = {
    "hubert": "mert-95m",
    "mert_model": "mert-95m",
    "data2vec-audio": "music2vec",
    "encodec": "encodec",
}
"""Model type of a folder -> the encoder that reads it."""

DEFAULT_TEXT_AUDIO_ENCODER = "laion/larger_clap_music"
"""The `TextAudioEncoder` of scores where none is named."""

TEXT_AUDIO_ENCODERS: dict[str, str] = {"hub": "music_evals.models.encoders.text_audio:load_text_audio_encoder"}
"""Where from -> ``module:function``, which takes a Hub id or folder and returns a `TextAudioEncoder`."""

WRITERS: dict[str, str] = {
    "transformers": "music_evals.models.lyric_writers:TransformersWriter",
    "endpoint": "music_evals.models.lyric_writers:EndpointWriter",
}
"""Kind -> ``module:class`` of every `LyricWriter`."""

TUNED_WRITERS: dict[str, str] = {"lyric_writer": "music_evals.models.lyric_writers:TransformersWriter"}
"""Model type of a recipe -> ``module:class`` that reads what tuning a language model by it leaves."""
