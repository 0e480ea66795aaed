"""Encoders of texts and recordings: a tiny random CLAP of the real classes, MuQ-MuLan by a stand-in of its package."""

from __future__ import annotations

import json
import shutil
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from music_evals.errors import (
    InvalidAudioError,
    InvalidInputError,
    MissingBackendError,
    ModelUnavailableError,
    UnknownNameError,
)
from music_evals.models.encoders.text_audio import ClapEncoder, load_text_audio_encoder
from music_evals.protocols import LayeredEncoder

from .tiny_clap import N_STAGES, save_tiny_clap

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.usefixtures("one_thread")

RATE = 8000


def sound(seconds: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(round(seconds * RATE)).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_clap(tmp_path_factory.mktemp("clap"))


@pytest.fixture(scope="module")
def clap(folder: Path) -> ClapEncoder:
    return load_text_audio_encoder(str(folder), device="cpu")


def test_vectors_are_those_of_the_whole_model(folder: Path, clap: ClapEncoder) -> None:
    model = transformers.ClapModel.from_pretrained(folder).eval()
    processor = transformers.ClapProcessor.from_pretrained(folder)
    window, texts = sound(1.0), ["slow piano", "rock"]
    audio = processor.feature_extractor(window, sampling_rate=RATE, return_tensors="pt")
    with torch.inference_mode():
        for text, vector in zip(texts, clap.encode_texts(texts), strict=True):
            whole = model(**processor.tokenizer(text, return_tensors="pt"), **audio)
            assert vector == pytest.approx(whole.text_embeds[0].numpy(), abs=1e-6)
            assert clap.encode_audio(window) == pytest.approx(whole.audio_embeds[0].numpy(), abs=1e-6)
    assert clap.encode_texts(texts).dtype == clap.encode_audio(window).dtype == np.float32


def test_what_decides_the_numbers_is_named(folder: Path, clap: ClapEncoder) -> None:
    assert clap.rate == RATE
    assert clap.about["revision"].startswith("sha256-")
    rest = {key: value for key, value in clap.about.items() if key != "revision"}
    assert rest == {"name": str(folder), "precision": "fp32", "window_sec": 1.0}


def test_the_commit_of_a_hub_id_is_named(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the cache of the Hub, without a connection."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    stored, commit = tmp_path / "models--lab--clap", "a" * 40
    shutil.copytree(folder, stored / "snapshots" / commit)
    (stored / "refs").mkdir()
    (stored / "refs" / "main").write_text(commit)
    assert load_text_audio_encoder("lab/clap", device="cpu").about["revision"] == commit


def test_a_long_recording_is_the_mean_of_its_windows(folder: Path, clap: ClapEncoder) -> None:
    """2.5 s: two windows, and one that ends with the recording; of 2 s two. A shorter window is an option."""
    samples = sound(2.5)
    parts = [samples[start : start + RATE] for start in (0, RATE, RATE * 3 // 2)]
    vectors = [clap.encode_audio(part) for part in parts]
    assert clap.encode_audio(samples) == pytest.approx(np.mean(vectors, axis=0), abs=1e-6)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-6)
    assert clap.encode_audio(samples[: 2 * RATE]) == pytest.approx(np.mean(vectors[:2], axis=0), abs=1e-6)
    short = load_text_audio_encoder(str(folder), device="cpu", window_sec=0.5)
    assert len(list(short.layers(samples))) == 5  # type: ignore[union-attr]


def test_windows_that_the_network_does_not_take(folder: Path) -> None:
    for window in (0.1, 1.5):
        with pytest.raises(InvalidInputError, match="window_sec"):
            load_text_audio_encoder(str(folder), device="cpu", window_sec=window)


def test_a_text_does_not_depend_on_its_neighbours(clap: ClapEncoder) -> None:
    alone = clap.encode_texts(["jazz"])[0]
    beside = clap.encode_texts(["a very long text about an orchestra", "jazz"])[1]
    assert (alone == beside).all()
    long = "a" * 200
    assert (clap.encode_texts([long])[0] == clap.encode_texts([long[:100]])[0]).all()  # 77 tokens count


def test_layers(clap: ClapEncoder) -> None:
    assert isinstance(clap, LayeredEncoder)
    windows = list(clap.layers(sound(1.5)))
    assert len(windows) == 2
    assert [layer.shape for layer in windows[0]] == [(256, 16), (64, 32), (16, 64), (16, 64)]
    assert len(windows[0]) == N_STAGES


def test_too_short(clap: ClapEncoder) -> None:
    for use in (clap.encode_audio, lambda samples: list(clap.layers(samples))):
        with pytest.raises(InvalidAudioError):
            use(sound(0.4))
    assert np.isfinite(clap.encode_audio(sound(0.5))).all()


def test_options_that_are_not_there(folder: Path) -> None:
    for options, error in (
        ({"precision": "fp8"}, UnknownNameError), ({"precision": "fp16"}, InvalidInputError),
        ({"device": "abacus"}, InvalidInputError), ({"revision": "main"}, InvalidInputError),
    ):  # fmt: skip
        with pytest.raises(error):
            load_text_audio_encoder(str(folder), **{"device": "cpu", **options})


def test_models_that_cannot_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing there, another model, weights that are cut, pickled ones: one line each, and no other encoder."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", _no_connection)
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text(json.dumps({"model_type": "bert"}))
    cut = save_tiny_clap(tmp_path / "cut")
    weights = cut / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    pickled = save_tiny_clap(tmp_path / "pickled", safe=False)
    for place in ("laion/larger_clap_music", "no such folder", str(other), str(cut), str(pickled)):
        with pytest.raises(ModelUnavailableError) as raised:
            load_text_audio_encoder(place, device="cpu")
        assert "\n" not in str(raised.value)


def _no_connection(*_: Any, **__: Any) -> None:
    raise ConnectionError


class Mulan:
    """What the package's model does, of no weights: the mean and the spread of a clip; the length of a text."""

    sr, clip_secs, device = 100, 10, "cpu"

    @classmethod
    def from_pretrained(cls, name: str, revision: str | None) -> Mulan:
        assert (Path(name) / "model.safetensors").is_file()
        assert revision is None
        return cls()

    def to(self, _: str) -> Mulan:
        return self

    def eval(self) -> Mulan:
        return self

    def __call__(self, wavs: torch.Tensor | None = None, texts: list[str] | None = None) -> torch.Tensor:
        if wavs is None:
            return torch.tensor([[float(len(text)), 1.0] for text in texts or []])
        assert wavs.shape == (1, 1000)
        return torch.stack([wavs.mean(1), wavs.std(1)], dim=1)


@pytest.fixture
def mulan(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps({"mulan": {"sr": 24000}}))
    (tmp_path / "model.safetensors").touch()
    return tmp_path


def test_mulan_by_its_package(mulan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = types.ModuleType("muq")
    package.MuQMuLan = Mulan  # type: ignore[attr-defined]
    package.__spec__ = types.SimpleNamespace()  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "muq", package)
    load: Mapping[str, Any] = {"device": "cpu", "trust_remote_code": True}
    with pytest.raises(ModelUnavailableError, match="trust_remote_code=True"):
        load_text_audio_encoder(str(mulan), device="cpu")
    with pytest.raises(InvalidInputError):
        load_text_audio_encoder(str(mulan), precision="bf16", **load)
    encoder = load_text_audio_encoder(str(mulan), **load)
    assert (encoder.rate, encoder.about["window_sec"]) == (100, 10.0)
    assert encoder.encode_texts(["abcd"])[0] == pytest.approx(np.array([4, 1]) / np.sqrt(17))
    vector = encoder.encode_audio(np.ones(300, np.float32))  # repeated: its spread stays 0
    assert vector == pytest.approx([1, 0])
    assert not isinstance(encoder, LayeredEncoder)
    (mulan / "model.safetensors").unlink()
    with pytest.raises(ModelUnavailableError, match="pickled"):
        load_text_audio_encoder(str(mulan), **load)


def test_mulan_without_its_package(mulan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "muq", None)
    with pytest.raises(MissingBackendError, match="pip install muq") as raised:
        load_text_audio_encoder(str(mulan), device="cpu", trust_remote_code=True)
    assert raised.value.package == "muq"
