"""Recordings in, one vector each out: what all encoders of music have in common."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from music_evals.errors import MusicEvalsError, located
from music_evals.models._encoder_audio import Source

__all__ = ["Extraction", "Extractor", "Feature"]

Feature = npt.NDArray[np.float32]
"""A vector, shape (size,)."""


class Extractor(Protocol):
    """Anything that turns a recording into one vector."""

    name: str  # one of `music_encoders.ENCODERS`
    size: int  # length of the vector
    about: Mapping[str, Any]  # all that decides the numbers besides the recording, for records and keys

    def features(self, source: Source) -> Feature:
        """Return float32, shape (size,)."""
        ...

    def extract(
        self, sources: Iterable[tuple[str, Source]], *, progress: bool = False
    ) -> Iterator[tuple[str, Feature]]:
        """Yield (id, feature) of each (id, recording)."""
        ...


class Extraction(abc.ABC):
    """What all extractors share."""

    @abc.abstractmethod
    def features(self, source: Source) -> Feature:
        """Return float32, shape (size,)."""

    def extract(
        self, sources: Iterable[tuple[str, Source]], *, progress: bool = False
    ) -> Iterator[tuple[str, Feature]]:
        """Yield (id, feature) of each (id, recording), one after the other: nothing is held back."""
        from tqdm import tqdm

        total = len(sources) if isinstance(sources, Sized) else None
        for name, source in tqdm(sources, desc="features", unit="song", total=total, disable=not progress):
            try:
                feature = self.features(source)
            except MusicEvalsError as error:
                raise located(error, name) from error
            yield name, feature
