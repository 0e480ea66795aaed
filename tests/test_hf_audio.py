"""The base class of the modules that judge edits, seen through a small module of our own."""

from __future__ import annotations

import dataclasses
import gc
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

import music_evals.hf as mh
from music_evals.annotations import Score, Tempo
from music_evals.audio.io import Audio, AudioPolicy, load_audio
from music_evals.errors import (
    InvalidAudioError,
    InvalidInputError,
    MissingBackendError,
    NoDataError,
    PairCountError,
    UndefinedMetricWarning,
    UnsupportedTypeError,
)
from music_evals.pipelines.preservation import evaluate_preservation, modality
from music_evals.symbolic.midi import save_midi, write_midi
from music_evals.symbolic.notes import make_notes

RATE = 8000
SAMPLES = np.sin(2 * np.pi * 440 * np.arange(3 * RATE) / RATE) / 2
SCORE = Score(make_notes([0, 480], [480, 480], [60, 64]), 480, tempos=(Tempo(0, 97.3),), voices=("Lead",))


class Arrived(mh.AudioMetric):
    """What arrives at `_compute`."""

    def _info(self) -> Any:
        return self.make_info("What arrives.")

    def _compute(self, predictions: list[str], references: list[str], *, fail: bool = False) -> dict[str, Any]:
        if fail:
            raise InvalidInputError("asked to fail")
        sources = mh.read_sources(references), mh.read_sources(predictions)
        self.loaded = [[item if isinstance(item, Score) else loaded(item) for item in side] for side in sources]
        return {"paths": [str(path) for path in predictions], "n": len(predictions)}


class Fifths(mh.AudioMetric):
    """One metric of the eleven."""

    def _info(self) -> Any:
        return self.make_info("Key distance.")

    def _compute(self, predictions: list[str], references: list[str], **options: Any) -> dict[str, Any]:
        originals, edits = mh.read_sources(references), mh.read_sources(predictions)
        return evaluate_preservation(originals, edits, metrics=["chroma_dtw_similarity"], **options)


def loaded(item: str | Audio) -> Audio:
    return item if isinstance(item, Audio) else load_audio(item)


@pytest.fixture
def arrived(tmp_path: Path) -> Arrived:
    return Arrived(cache_dir=str(tmp_path / "cache"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    soundfile.write(tmp_path / "tone.wav", SAMPLES, RATE, subtype="DOUBLE")
    return tmp_path / "tone.wav"


def decoder(file: Path) -> Any:
    """What `datasets` hands out for a row of an audio column: torchcodec's decoder, by its two methods."""
    samples, rate = soundfile.read(file, dtype="float32", always_2d=True)
    return types.SimpleNamespace(get_all_samples=lambda: types.SimpleNamespace(data=samples.T, sample_rate=rate))


KINDS: dict[str, Callable[[Path], Any]] = {
    "path": lambda file: file,
    "str path": str,
    "samples and rate": lambda _: (SAMPLES, RATE),
    "Gradio's rate and samples": lambda _: (RATE, SAMPLES),
    "list of two": lambda _: [SAMPLES, np.int64(RATE)],
    "float32": lambda _: (SAMPLES.astype(np.float32), RATE),
    "channels first": lambda _: (np.stack([SAMPLES, SAMPLES]), RATE),
    "channels last, from Gradio": lambda _: (RATE, np.stack([SAMPLES, SAMPLES], axis=1)),
    "16 bit": lambda _: (np.round(SAMPLES * 2**15).astype(np.int16), RATE),
    "row with an array": lambda _: {"array": SAMPLES, "sampling_rate": RATE, "path": None},
    "row with a list": lambda _: {"array": SAMPLES.tolist(), "sampling_rate": RATE},
    "row with bytes": lambda file: {"bytes": file.read_bytes(), "path": "tone.wav"},
    "row with bytes and no path": lambda file: {"bytes": file.read_bytes(), "path": None},
    "row with a path": lambda file: {"bytes": None, "path": str(file)},
    "decoder": decoder,
    "Audio": load_audio,
    "read-only": lambda _: (np.broadcast_to(SAMPLES, SAMPLES.shape), RATE),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_recording_says_the_same(kind: str, arrived: Arrived, file: Path) -> None:
    assert arrived.compute(predictions=[KINDS[kind](file)], references=[file])["n"] == 1
    (reference,), (prediction,) = arrived.loaded
    tolerance = 2**-14 if kind == "16 bit" else 1e-6
    assert prediction.samples.shape == reference.samples.shape
    np.testing.assert_allclose(prediction.samples, reference.samples, atol=tolerance)


def test_a_column_that_would_be_decoded_says_how_to_hand_it_over(
    arrived: Arrived, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Datasets needs torchcodec to decode; a column that is left as it is stored needs nothing."""
    import datasets

    monkeypatch.setattr(datasets.config, "TORCHCODEC_AVAILABLE", False)
    monkeypatch.setitem(sys.modules, "torchcodec", None)
    rows = datasets.Dataset.from_dict({"audio": [str(file)] * 2}).cast_column("audio", datasets.Audio())
    with pytest.raises(MissingBackendError, match=r"references: decoding .*torchcodec.*Audio\(decode=False\)"):
        arrived.add_batch(references=rows["audio"], predictions=rows["audio"])
    stored = rows.cast_column("audio", datasets.Audio(decode=False))["audio"]
    arrived.add_batch(references=stored, predictions=stored)


def test_another_missing_package_is_not_mistaken_for_the_decoder(arrived: Arrived, file: Path) -> None:
    def items() -> Iterator[Path]:
        yield file
        raise ImportError("no such thing")

    with pytest.raises(ImportError, match="no such thing"):
        arrived.add_batch(references=items(), predictions=[file])


def test_a_tensor_is_samples(arrived: Arrived, file: Path) -> None:
    torch = pytest.importorskip("torch", reason="models need the extra `models`")
    arrived.compute(predictions=[(torch.from_numpy(SAMPLES)[None], RATE)], references=[file])
    (reference,), (prediction,) = arrived.loaded
    np.testing.assert_allclose(prediction.samples, reference.samples, atol=1e-6)


def test_scores_arrive_as_they_are(arrived: Arrived, tmp_path: Path) -> None:
    """Not through MIDI, which rounds tempi to a microsecond a quarter."""
    path = save_midi(SCORE, tmp_path / "a.mid")
    arrived.add_batch(predictions=[SCORE, SCORE], references=[SCORE, path])
    texts: list[str] = []
    arrived._compute = lambda **sides: texts.extend(sides["references"]) or {}  # type: ignore[method-assign, func-returns-value]
    arrived.compute()
    score, read = mh.read_sources(texts)
    assert isinstance(score, Score)
    assert score.to_dict() == SCORE.to_dict()
    assert read == str(path)


def test_an_audio_value_arrives_as_it_is(arrived: Arrived) -> None:
    """Its policy and its silence come along: they cannot be told from the samples."""
    quiet = load_audio(SAMPLES / 1e5, rate=RATE, policy=AudioPolicy(sample_rate=16000, peak_normalise=False))
    assert quiet.silent
    quiet = dataclasses.replace(quiet, read_by="ffmpeg 7.1", cancelled=True)
    arrived.compute(predictions=[quiet], references=[quiet])
    [[prediction], _] = arrived.loaded
    np.testing.assert_array_equal(prediction.samples, quiet.samples)
    assert (prediction.policy, prediction.silent, prediction.sample_rate) == (quiet.policy, True, 16000)
    assert (prediction.read_by, prediction.cancelled) == ("ffmpeg 7.1", True)
    assert prediction.content_hash == quiet.content_hash


def test_numbers_are_those_of_the_library(tmp_path: Path) -> None:
    """Samples in memory, at another rate and in two channels, through the module and without it."""
    rng = np.random.default_rng(3)
    first, second = (np.cumsum(rng.normal(size=(2, 3 * 16000)), axis=1) / 400 for _ in range(2))
    module = Fifths(cache_dir=str(tmp_path))
    through = module.compute(predictions=[(second, 16000)], references=[(first, 16000)])
    plain = evaluate_preservation(
        [load_audio(first, rate=16000)], [load_audio(second, rate=16000)], metrics=["chroma_dtw_similarity"]
    )
    assert through["chroma_dtw_similarity"] == plain["chroma_dtw_similarity"]


@pytest.mark.parametrize(
    ("item", "error", "message"),
    [
        (SAMPLES, UnsupportedTypeError, "got ndarray"),
        ((SAMPLES,), UnsupportedTypeError, "a path of a recording"),
        ((SAMPLES, SAMPLES), UnsupportedTypeError, "a path of a recording"),
        ((44100, 44100), UnsupportedTypeError, "a path of a recording"),
        ((SAMPLES, 8000.0), UnsupportedTypeError, "a path of a recording"),
        ((SAMPLES, True), UnsupportedTypeError, "a path of a recording"),
        (("tone", 8000), UnsupportedTypeError, "samples in an array, got str"),
        ((SAMPLES.astype(np.uint8), 8000), InvalidAudioError, "got uint8"),
        ((SAMPLES * np.nan, 8000), InvalidAudioError, "NaN or infinite"),
        ((SAMPLES[:0], 8000), InvalidAudioError, "no samples"),
        ((np.zeros((20, 30, 2)), 8000), InvalidAudioError, "two dimensions"),
        ((SAMPLES, 10), InvalidInputError, "sample_rate must lie in 4000..384000 Hz, got 10"),
        ({"array": SAMPLES, "sampling_rate": "high"}, InvalidAudioError, "whole Hz, got 'high'"),
        ({"array": SAMPLES}, UnsupportedTypeError, "got the keys array"),
        ({}, UnsupportedTypeError, "a row has an array"),
        ({"bytes": None, "path": "gone.wav"}, NoDataError, r"gone\.wav: no such file"),
        (Path("gone.mid"), NoDataError, r"gone\.mid: no such file"),
        (b"RIFF", UnsupportedTypeError, "got bytes"),
        (None, UnsupportedTypeError, "got NoneType"),
    ],
)
def test_an_item_that_cannot_be_judged_is_named(
    item: Any, error: type[Exception], message: str, arrived: Arrived, file: Path
) -> None:
    with pytest.raises(error, match=message) as caught:
        arrived.add_batch(predictions=[file, item], references=[file, file])
    assert str(caught.value).startswith("predictions[1]: ")
    with pytest.raises(error, match=r"^references\[0\]: "):
        arrived.add(prediction=file, reference=item)
    assert len(arrived) == 0


def test_a_failed_add_changes_nothing(arrived: Arrived, file: Path) -> None:
    arrived.add(prediction=(SAMPLES, RATE), reference=file)
    with pytest.raises(UnsupportedTypeError):
        arrived.add_batch(predictions=[file, 7], references=[file, file])
    with pytest.raises(PairCountError):
        arrived.add_batch(predictions=[file, file], references=[file])
    with pytest.raises(UnsupportedTypeError, match="must be a list of items"):
        arrived.add_batch(predictions=str(file), references=[file])
    arrived.add(prediction=file, reference=(SAMPLES, RATE))
    assert arrived.compute()["n"] == 2


def test_samples_lie_in_a_private_folder_until_they_are_computed(arrived: Arrived, file: Path) -> None:
    arrived.add(prediction=(SAMPLES, RATE), reference=(SAMPLES, RATE))
    arrived.add(prediction=(SAMPLES / 2, RATE), reference=file)
    assert arrived.spool is not None
    folder = arrived.spool
    assert len(list(folder.iterdir())) == 2  # one file for equal samples
    assert folder.stat().st_mode & 0o077 == 0
    assert [Path(path).parent for path in arrived.compute()["paths"]] == [folder, folder]
    assert not folder.exists()
    assert arrived.spool is None


@pytest.mark.slow
def test_samples_go_when_computing_fails_and_when_the_instance_does(
    arrived: Arrived, file: Path, tmp_path: Path
) -> None:
    arrived.add(prediction=(SAMPLES, RATE), reference=file)
    assert arrived.spool is not None
    folder = arrived.spool
    with pytest.raises(InvalidInputError, match="asked to fail"):
        arrived.compute(fail=True)
    assert not folder.exists()
    assert arrived.compute(predictions=[file], references=[file])["n"] == 1
    dropped = Arrived(cache_dir=str(tmp_path / "other"), keep_in_memory=True)
    dropped.add(prediction=(SAMPLES, RATE), reference=file)
    assert dropped.spool is not None
    folder = dropped.spool
    del dropped
    gc.collect()
    assert not folder.exists()


def test_the_bytes_of_a_score_need_no_name(arrived: Arrived) -> None:
    arrived.add(prediction={"bytes": write_midi(SCORE), "path": None}, reference=SCORE)
    assert arrived.spool is not None
    (written,) = arrived.spool.iterdir()
    assert modality(written) == "symbolic"


def test_files_need_no_folder(arrived: Arrived, file: Path) -> None:
    arrived.add(prediction=file, reference=SCORE)
    assert arrived.spool is None


def test_a_path_is_kept_from_where_we_are(arrived: Arrived, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    arrived.add(prediction="tone.wav", reference="tone.wav")
    monkeypatch.chdir("/")
    assert arrived.compute()["paths"] == [str(file)]


def test_several_processes_share_files_only(file: Path, tmp_path: Path) -> None:
    shared = Arrived(cache_dir=str(tmp_path), num_process=2, process_id=0, experiment_id="run")
    with pytest.raises(UnsupportedTypeError, match="write the samples to files"):
        shared.add(prediction=(SAMPLES, RATE), reference=file)


def test_recordings_are_decoded_as_they_are_asked_to_be(tmp_path: Path, file: Path) -> None:
    module = Fifths(cache_dir=str(tmp_path / "cache"))
    chosen: dict[str, Any] = {"policy": AudioPolicy(silence_dbfs=0.0), "per_item": True}
    with pytest.warns(UndefinedMetricWarning):
        found = module.compute(references=[str(file)], predictions=[str(file)], **chosen)
    assert found["per_item"][0]["reasons"]["chroma_dtw_similarity"].startswith("reference: silent")
    assert "policy: an AudioPolicy" in (module.compute.__doc__ or "")


def test_the_base_is_abstract_and_tells_what_it_takes(arrived: Arrived) -> None:
    assert inspect.isabstract(mh.AudioMetric)
    assert "(samples, rate)" in arrived.compute.__doc__
    assert "2512.14629" in arrived.citation
    assert arrived.info.license == "Apache-2.0"
