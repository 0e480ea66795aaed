"""Whatever is wrong with a file, it is an error by name or NaN with a reason, and never a number."""

from __future__ import annotations

import io
import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from music_evals.benchmark.tasks.preservation.task import PRESERVATION, Settings
from music_evals.metrics.catalogue import PRESERVATION_METRICS

RATE = 22050
METRICS = ("circle_of_fifths_distance", "chroma_dtw_similarity", "beat_f_measure", "segment_ari", "voicing_recall")


def music(seconds: float = 10.5, rate: int = RATE) -> Any:
    """Chords of two beats and a melody of one note a beat, over a click a beat; shape (n,)."""
    rng = np.random.default_rng(1)
    times = np.arange(int(seconds * rate)) / rate
    chord = np.array([[0, 4, 7], [5, 9, 12], [7, 11, 14], [0, 4, 7]])[(times // 1.0).astype(int) % 4].T
    tones = np.sin(2 * np.pi * 220 * 2 ** (chord / 12) * times).sum(axis=0)
    notes = np.array([12, 14, 16, 17, 19, 17, 16, 14])[(times // 0.5).astype(int) % 8]
    partials = np.arange(1, 9)[:, None]
    lead = (np.sin(2 * np.pi * 440 * 2 ** (notes / 12) * partials * times) * 0.7**partials).sum(axis=0)
    lead = lead * np.exp(-3 * (times % 0.5))
    clicks = np.where(times % 0.5 < 0.02, rng.standard_normal(len(times)), 0.0)
    return (0.05 * tones + 0.2 * lead + 0.1 * clicks).astype(np.float32)


def encoded(samples: Any, rate: int = RATE, format: str = "WAV", subtype: str | None = None) -> bytes:  # noqa: A002
    import soundfile

    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format=format, subtype=subtype)
    return buffer.getvalue()


def lying(content: bytes) -> bytes:
    """Claim ten times as much data as there is."""
    start = content.index(b"data") + 4
    (size,) = struct.unpack("<I", content[start : start + 4])
    return content[:start] + struct.pack("<I", 10 * size) + content[start + 4 :]


def piped(content: bytes) -> bytes:
    """State no length, as what writes into a pipe does."""
    start = content.index(b"data") + 4
    return content[:4] + b"\xff" * 4 + content[8:start] + b"\xff" * 4 + content[start + 4 :]


def bad_files() -> dict[str, bytes]:
    whole = music()
    holed = whole.copy()
    holed[5000] = np.nan
    wav, flac, mp3 = encoded(whole), encoded(whole, format="FLAC"), encoded(whole, format="MP3")
    return {
        "silent.wav": encoded(np.zeros_like(whole)),
        "constant.wav": encoded(np.full_like(whole, 0.3)),
        "short.wav": encoded(whole[: int(0.3 * RATE)]),
        "nan.wav": encoded(holed, subtype="FLOAT"),
        "cut_wav.wav": wav[: len(wav) // 2],
        "cut_flac.flac": flac[: len(flac) // 2],
        "cut_mp3.mp3": mp3[: len(mp3) // 2],
        "text.wav": b"this is no music\n" * 100,
        "lying.wav": lying(wav),
        "nothing.wav": b"",
        "header.wav": wav[:44],
        "unknown.m4a": b"\x00\x00\x00\x20ftypM4A " + bytes(200),
    }


def good_files() -> dict[str, bytes]:
    whole = music()
    return {
        "same.wav": encoded(whole),
        "trailing.wav": encoded(whole) + bytes(16),
        "piped.wav": piped(encoded(whole)),
        "flac.flac": encoded(whole, format="FLAC"),
        "soft.wav": encoded(0.5 * whole, subtype="FLOAT"),
        "six.wav": encoded(np.repeat(whole[:, None], 6, axis=1)),
        "8k.wav": encoded(music(rate=8000), rate=8000),
        "longer.wav": encoded(music(13.0)),
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Results and records of one run over everything."""
    folder = tmp_path_factory.mktemp("hostile")
    for side in ("reference", "estimate"):
        (folder / side).mkdir()
    for name, content in {**bad_files(), **good_files()}.items():
        (folder / "reference" / f"{Path(name).stem}.wav").write_bytes(encoded(music()))
        (folder / "estimate" / name).write_bytes(content)
        # and the other way round: the bad file is the original
        (folder / "reference" / f"as original {name}").write_bytes(content)
        (folder / "estimate" / f"as original {Path(name).stem}.wav").write_bytes(encoded(music()))
    (folder / "reference" / "lonely.wav").write_bytes(encoded(music()))
    settings = Settings(
        folder / "out", reference=folder / "reference", estimates=(str(folder / "estimate"),),
        metrics=",".join(METRICS), workers=1, n_resamples=20, controls=False,
    )  # fmt: skip
    outcome = PRESERVATION.run(settings)
    return {"results": outcome.results, "found": outcome.scores, "folder": folder}


def scores(run: dict[str, Any], item: str) -> dict[str, dict[str, Any]]:
    return scores_of(run["found"], item)


def scores_of(found: Any, item: str) -> dict[str, dict[str, Any]]:
    return {row["metric"]: row for row in found.records.of("score") if row["item"] == item}


SILENT = ("silent", "constant")
OF_SOUND = {"circle_of_fifths_distance", "segment_ari"}  # what music without a sound does not have
PLACES = [(Path(name).stem, place) for name in bad_files() for place in ("", "as original ")]


@pytest.mark.parametrize(("name", "place"), [(name, place) for name, place in PLACES if place or name not in SILENT])
def test_no_bad_file_has_a_number(run: dict[str, Any], name: str, place: str) -> None:
    for metric in METRICS:
        score = scores(run, f"{place}{name}")[metric]
        assert score.get("value") is None, (metric, score)
        assert score.get("error") or score.get("reason"), (metric, score)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("nan", "InvalidAudioError: estimate: "),
        ("cut_wav", "UnreadableFileError: estimate: "),
        ("cut_flac", "UnreadableFileError: estimate: "),
        ("cut_mp3", "UnreadableFileError: estimate: "),
        ("text", "UnreadableFileError: estimate: "),
        ("lying", "UnreadableFileError: estimate: "),
        ("nothing", "UnreadableFileError: estimate: "),
        ("unknown", "UnreadableFileError: estimate: "),
    ],
)
def test_what_is_damaged_is_an_error_by_name(run: dict[str, Any], name: str, error: str) -> None:
    found = {score["error"] for score in scores(run, name).values()}
    assert len(found) == 1
    assert found.pop().startswith(error)
    told = {row["item"]: row for row in run["results"]["failures"]}
    assert told[name]["metric"] is None
    assert f"{name}." in told[name]["error"]  # the file is named


@pytest.mark.parametrize(
    ("name", "reason"),
    [("silent", "silent"), ("constant", "silent: the peak, the mean aside,"), ("short", "shorter than 2 s")],
)
def test_what_has_no_features_is_undefined_with_the_reason(run: dict[str, Any], name: str, reason: str) -> None:
    for place, side in (("", "estimate"), ("as original ", "reference")):
        found = [score for score in scores(run, f"{place}{name}").values() if score.get("value") is None]
        assert len(found) == (len(METRICS) if place or name not in SILENT else len(OF_SOUND))
        assert all(score["reason"].startswith(f"{side}: {reason}") for score in found)


@pytest.mark.parametrize("name", SILENT)
def test_a_silent_output_scores_as_low_as_can_be(run: dict[str, Any], name: str) -> None:
    found = {metric: score.get("value") for metric, score in scores(run, name).items()}
    assert found == {metric: None if metric in OF_SOUND else 0 for metric in METRICS}
    (notes,) = [row["notes"] for row in run["results"]["notes"] if row["item"] == name]
    assert any("nothing sounds" in note for note in notes)


@pytest.mark.parametrize("name", ["same", "trailing", "piped", "flac", "soft", "six"])
def test_containers_channels_and_level_change_nothing(run: dict[str, Any], name: str) -> None:
    found = scores(run, name)
    for metric in METRICS:
        assert found[metric].get("value") == pytest.approx(PRESERVATION_METRICS[metric].best, abs=1e-3), metric


@pytest.mark.parametrize("name", ["8k", "longer"])
def test_other_rates_and_lengths_are_compared(run: dict[str, Any], name: str) -> None:
    for metric, score in scores(run, name).items():
        scale = PRESERVATION_METRICS[metric]
        assert scale.low <= score["value"] <= scale.high
    remarks = {row["item"]: " ".join(row["notes"]) for row in run["results"]["notes"]}
    assert ("lengths differ" in remarks.get(name, "")) == (name == "longer")


def test_a_missing_partner_is_a_failure(run: dict[str, Any]) -> None:
    told = {row["item"]: row["error"] for row in run["results"]["failures"]}
    assert told["lonely"].startswith("PairCountError: no estimate for 'lonely'")


def test_means_count_what_is_defined_alone(run: dict[str, Any]) -> None:
    cell = run["results"]["scores"]["estimate"]["chroma_dtw_similarity"]
    n_good, n_bad = len(good_files()), len(bad_files())
    assert cell["n"] == 2 * (n_good + n_bad) + 1
    assert cell["n_defined"] == 2 * n_good + len(SILENT)
    assert 0.9 < cell["value"] * cell["n_defined"] / (2 * n_good) <= 1


@pytest.mark.slow
def test_a_store_other_workers_and_a_second_run_change_no_digit(run: dict[str, Any], tmp_path: Path) -> None:
    folder = run["folder"]
    kept = ("same", "six", "8k", "longer", "silent", "text", "as original longer")
    for side in ("reference", "estimate"):
        (tmp_path / side).mkdir()
        for name in kept:
            (path,) = (folder / side).glob(f"{name}.*")
            (tmp_path / side / path.name).symlink_to(path)
    for attempt in ("empty store", "full store"):
        settings = Settings(
            tmp_path / attempt, reference=tmp_path / "reference", estimates=(f"estimate={tmp_path / 'estimate'}",),
            metrics=",".join(METRICS), workers=2, n_resamples=20, controls=False,
            features=tmp_path / "store", report=False,
        )  # fmt: skip
        found = PRESERVATION.run(settings).scores
        for name in kept:
            expected, got = scores(run, name), scores_of(found, name)
            told = {metric: _told(score) for metric, score in got.items()}
            assert json.dumps(told, sort_keys=True) == json.dumps(
                {metric: _told(score) for metric, score in expected.items()}, sort_keys=True
            )
    assert list((tmp_path / "store").rglob("*.entry"))


def _told(score: dict[str, Any]) -> dict[str, Any]:
    """Return what a score says, without the folder that an error names."""
    return {
        "value": score.get("value"),
        "reason": score.get("reason"),
        "error": score.get("error", "").partition(":")[0],
    }


def test_a_folder_in_place_of_a_file_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "folder.wav").mkdir()
    (tmp_path / "list.csv").write_text("reference,estimate\nfolder.wav,folder.wav\n")
    settings = Settings(tmp_path / "out", manifest=tmp_path / "list.csv", report=False)
    (failure,) = PRESERVATION.run(settings).results["failures"]
    assert failure["error"].startswith("UnreadableFileError: ")
    assert os.fspath(tmp_path / "folder.wav") in failure["error"]
