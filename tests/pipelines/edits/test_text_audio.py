"""Edits by text, over a small encoder whose numbers are known, and over a tiny random CLAP loaded by its folder."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from tests.models.encoders.tiny_clap import save_tiny_clap

from music_evals.annotations import Score
from music_evals.errors import (
    InvalidAudioError,
    InvalidInputError,
    ModelUnavailableError,
    NoDataError,
    PairCountError,
    UndefinedMetricWarning,
    UnsupportedTypeError,
)
from music_evals.pipelines.edits.text_audio import evaluate_lpaps, evaluate_text_similarity
from music_evals.symbolic.notes import make_notes

RATE = 8000
WORDS = ("low", "middle", "high")
PITCHES = dict(zip(WORDS, (200, 1000, 3000), strict=True))


class Ear:
    """Hears how much sounds in three ranges; knows the three words for them, and nothing of other words."""

    about: Mapping[str, Any] = {"name": "ear", "revision": "1", "precision": "fp32", "window_sec": 1.0}
    rate = RATE

    def encode_texts(self, texts: list[str]) -> np.ndarray:
        return np.array([[word in text for word in WORDS] for text in texts], np.float32)

    def encode_audio(self, samples: np.ndarray) -> np.ndarray:
        if len(samples) < RATE // 2:
            raise InvalidAudioError("too short")
        size = np.abs(np.fft.rfft(samples[:RATE], RATE))
        return np.array([part.sum() for part in np.split(size, [500, 2000])], np.float32)


class LayeredEar(Ear):
    def layers(self, samples: np.ndarray) -> Iterator[list[np.ndarray]]:
        for start in range(0, len(samples), RATE):
            yield [np.abs(np.fft.rfft(samples[start : start + RATE])).reshape(-1, 1)]


@pytest.fixture
def tone(tmp_path: Path):
    """A function that writes a tone of each word and returns the path."""

    def write(*words: str, seconds: float = 1.0, name: str = "", volume: float = 0.3) -> Path:
        time = np.arange(round(seconds * RATE)) / RATE
        samples = sum((np.sin(2 * np.pi * PITCHES[word] * time) for word in words), np.zeros(len(time)))
        path = tmp_path / f"{name or '-'.join(words)}-{seconds}-{volume}.wav"
        soundfile.write(path, volume * samples, RATE, subtype="FLOAT")
        return path

    return write


def quietly(function: Any, *inputs: Any, **options: Any) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return function(*inputs, **options)


def test_edits_that_arrived_stayed_and_went_half_of_the_way(tone) -> None:
    references = [tone("low"), tone("high"), tone("middle")]
    edits = [tone("high"), tone("high"), tone("middle", "low")]
    result = evaluate_text_similarity(
        references, edits, ["something high", "low", "low"], source_texts=["low", "high", "middle"], encoder=Ear(),
        per_item=True,
    )  # fmt: skip
    rows = [[row[name] for name in result if name in row] for row in result["per_item"]]
    half = math.sqrt(0.5)  # and the chord of the eighth of a circle is 22.5° off that of the quarter
    assert rows[0] == pytest.approx([1, 1, 1], abs=0.01)
    assert rows[1] == pytest.approx([0, 0, 0], abs=0.01)
    assert rows[2] == pytest.approx([half, math.cos(math.pi / 8), 1], abs=0.01)
    assert result["text_direction_n_defined"] == 3
    assert result["text_audio_similarity_original"] == pytest.approx(0, abs=0.01)
    # each text with the edits of the two other originals: high 1, half of it low; low none and half; low none, none
    assert result["text_audio_similarity_chance"] == pytest.approx((1 / 2 + 0 + half / 2 + 0 + 0) / 3, abs=0.01)
    assert result["encoder"] == Ear.about
    assert {row["reasons"] == {} for row in result["per_item"]} == {True}


def test_silence_and_what_is_not_known(tone) -> None:
    silence = tone(seconds=1.0, name="silence")
    originals = [tone("low"), silence, tone("low")]
    result = quietly(
        evaluate_text_similarity, originals, [silence, tone("high"), tone("high")], ["high", "high", "high"],
        source_texts=["low", "low", None], encoder=Ear(), per_item=True,
    )  # fmt: skip
    first, second, third = result["per_item"]
    assert [first["text_audio_similarity"], first["text_direction"]] == [0, 0]
    assert second["text_audio_similarity"] == pytest.approx(1, abs=0.01)
    for row, names in ((first, {"instruction_rank"}), (second, {"text_direction", "instruction_rank"})):
        assert row["reasons"].keys() == names
        assert all(math.isnan(row[name]) for name in names)
    assert third["reasons"].keys() == {"text_direction", "instruction_rank"}
    assert (result["text_direction_n"], result["text_direction_n_defined"]) == (3, 1)


def test_the_level_of_a_file_changes_nothing(tone) -> None:
    quiet, loud = (
        quietly(evaluate_text_similarity, [tone("low")], [tone("high", volume=volume)], ["high"], encoder=Ear())
        for volume in (0.05, 0.9)
    )
    assert quiet["text_audio_similarity"] == pytest.approx(loud["text_audio_similarity"], abs=1e-6)


def test_edits_of_one_original_are_a_cluster(tone) -> None:
    low = tone("low")
    result = quietly(
        evaluate_text_similarity, [low, low, str(low)], [tone(word) for word in WORDS], WORDS, encoder=Ear()
    )  # fmt: skip
    assert result["text_audio_similarity_n_clusters"] == 1
    assert math.isnan(result["text_audio_similarity_chance"])
    assert result["instruction_rank"] == 1


def test_inputs_that_are_refused(tone) -> None:
    low, high = tone("low"), tone("high")
    score = Score(make_notes([0], [480], [60]), 480)
    for inputs, options, error in (
        (([low], [high, high], ["high"]), {}, PairCountError),
        (([low], [high], []), {}, PairCountError),
        (([low], [high], ["high"]), {"source_texts": []}, PairCountError),
        (([], [], []), {}, NoDataError),
        (([low], [high], [" "]), {}, InvalidInputError),
        (([low], [high], [None]), {}, InvalidInputError),
        (([low], [high], ["high"]), {"source_texts": [""]}, InvalidInputError),
        (([score], [high], ["high"]), {}, UnsupportedTypeError),
        (([low], [low.with_name("nothing.wav")], ["high"]), {}, NoDataError),
    ):
        with pytest.raises(error):
            evaluate_text_similarity(*inputs, encoder=Ear(), **options)
    with pytest.raises(InvalidAudioError, match=r"^predictions\[0\]"):
        evaluate_text_similarity([low], [tone("high", seconds=0.2)], ["high"], encoder=Ear())


def test_distances(tone) -> None:
    low, high = tone("low"), tone("high")
    result = evaluate_lpaps([low, low, high], [low, high, high], encoder=LayeredEar(), per_item=True)
    # of unit vectors without anything in common the squared distance is 2
    assert [row["lpaps"] for row in result["per_item"]] == pytest.approx([0, 2, 0], abs=0.01)
    assert result["lpaps_n_clusters"] == pytest.approx(9 / 5)
    assert result["lpaps_chance"] == pytest.approx((2 + 2 + 2) / 3, abs=0.01)
    assert result["encoder"] == Ear.about


def test_distances_are_of_what_both_have(tone) -> None:
    silence = tone(seconds=2.0, name="silence")
    result = quietly(
        evaluate_lpaps, [tone("low"), silence], [tone("low", seconds=2.0), silence], encoder=LayeredEar(), per_item=True
    )
    first, second = result["per_item"]
    assert first["lpaps"] == 0
    assert second["reasons"].keys() == {"lpaps"}
    with pytest.raises(InvalidInputError, match="layers"):
        evaluate_lpaps([tone("low")], [tone("low")], encoder=Ear())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("transformers")
    return str(save_tiny_clap(tmp_path_factory.mktemp("clap")))


@pytest.mark.slow
def test_a_clap_from_its_folder(tone, folder: str) -> None:
    references = [tone("low"), tone("high")]
    edits = [tone("low", "middle"), tone("high")]
    texts = {"texts": ["mild and loud", "rock"], "source_texts": ["piano", "jazz"]}
    result = evaluate_text_similarity(references, edits, **texts, encoder=folder, per_item=True)
    assert result["encoder"]["name"] == folder
    assert result["encoder"]["revision"].startswith("sha256-")
    assert result["per_item"][1]["text_direction"] == 0
    swapped = evaluate_text_similarity(
        references[::-1], edits[::-1], **{name: given[::-1] for name, given in texts.items()}, encoder=folder
    )
    for name in ("text_audio_similarity", "text_direction", "instruction_rank", "text_audio_similarity_chance"):
        assert swapped[name] == pytest.approx(result[name], abs=1e-12)
    there = evaluate_lpaps(references, edits, encoder=folder, per_item=True)
    back = evaluate_lpaps(edits, references, encoder=folder, per_item=True)
    assert there["per_item"][1]["lpaps"] == 0
    assert there["per_item"][0]["lpaps"] == pytest.approx(back["per_item"][0]["lpaps"])
    assert there["per_item"][0]["lpaps"] > 0


def test_without_weights(tone, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    for evaluate, inputs in ((evaluate_text_similarity, (["high"],)), (evaluate_lpaps, ())):
        with pytest.raises(ModelUnavailableError):
            evaluate([tone("low")], [tone("high")], *inputs, encoder=str(tmp_path / "nothing"))
