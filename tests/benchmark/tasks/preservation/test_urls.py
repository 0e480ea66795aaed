"""Pairs at URLs: judged as on the disk, to the last digit, whatever else is wrong at other addresses."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
from tests.web import WebServer

from music_evals.annotations import Score
from music_evals.benchmark.tasks.preservation.pairs import (
    CEILING,
    UNRELATED,
    Columns,
    pairs_in_folders,
    pairs_in_manifest,
    pairs_of_dataset,
)
from music_evals.benchmark.tasks.preservation.task import PRESERVATION, Settings
from music_evals.benchmark.tasks.preservation.worker import PairScorer
from music_evals.errors import InvalidInputError, NoDataError, UnreadableFileError
from music_evals.pipelines import preservation as pipeline
from music_evals.symbolic.midi import write_midi
from music_evals.symbolic.notes import make_notes

METRICS = ("motif_recall", "voicing_recall")
RATE = 22050


def tune(first: int) -> bytes:
    pitches = np.array([60, 62, 64, 65, 67, 69, 71, 72, 67, 64, 60, 67, 72, 71, 69, 67] * 4) + first
    return write_midi(Score(make_notes(480 * np.arange(len(pitches)), 480, pitches), 480))


def recording(pitch_hz: float) -> bytes:
    times = np.arange(3 * RATE) / RATE
    steps = 2 ** (np.array([0, 2, 4, 5])[(times // 0.5).astype(int) % 4] / 12)
    sound = 0.5 * np.sin(2 * np.pi * pitch_hz * np.cumsum(steps) / RATE) * (times % 0.5 < 0.4)
    buffer = io.BytesIO()
    soundfile.write(buffer, sound, RATE, format="FLAC")
    return buffer.getvalue()


FILES = {
    "originals/C# one.mid": tune(0),
    "originals/deep/two.mid": tune(3),
    "originals/three.flac": recording(220),
    "originals/four.flac": recording(330),
    "mine/C# one.mid": tune(1),
    "mine/deep/two.mid": tune(3),
    "mine/three.flac": recording(225),
    "mine/four.flac": recording(330),
}


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer(FILES) as server:
        yield server


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / "disk" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "disk"


def judged(out: Path, **settings: Any) -> dict[str, Any]:
    """Return results, and names and scores of the pairs by item and system."""
    judge = PairScorer(pipeline.Settings.of(metrics=METRICS))
    made = Settings(out, metrics=",".join(METRICS), n_resamples=20, report=False, **settings)
    outcome = PRESERVATION.run(made, scorer=judge)
    found = outcome.scores
    pairs = {
        (pair["item"], system): pair for system in found.systems for pair in found.of(system) if "error" not in pair
    }
    return {
        "results": outcome.results,
        "names": {key: (pair["reference"]["name"], pair["estimate"]["name"]) for key, pair in pairs.items()},
        "scores": {
            key: np.nan_to_num([found.value(*key, name) for name in METRICS], nan=-1.0).tolist() for key in pairs
        },
    }


def _of_mine(found: dict[tuple[str, str], Any]) -> dict[tuple[str, str], Any]:
    """Leave out who meets whom among the unrelated, which depends on what the files are known by."""
    return {key: value for key, value in found.items() if key[1] != UNRELATED}


@pytest.mark.slow
def test_processes_fetch_what_they_judge_and_find_equal_digits(web: WebServer, disk: Path, tmp_path: Path) -> None:
    here = judged(tmp_path / "here", reference=disk / "originals", estimates=[disk / "mine"], engine="serial")
    sides = {"reference": f"{web.url}/originals/", "estimates": [f"{web.url}/mine/"]}
    there = judged(tmp_path / "there", **sides, workers=1)
    assert there["results"]["failures"] == []
    for told in ("names", "scores"):
        assert _of_mine(there[told]) == _of_mine(here[told])
    assert {value for row in there["scores"].values() for value in row} - {None, 0.0, 1.0}
    for system in ("mine", CEILING):
        assert there["results"]["scores"][system] == here["results"]["scores"][system]
    asked = len(web.asked)
    assert judged(tmp_path / "there", **sides, workers=1)["scores"] == there["scores"]
    assert not {f"GET {name}" for name in FILES} & {*web.asked[asked:]}  # what is judged is not fetched again


def test_what_is_wrong_with_one_address_costs_its_pair_alone(
    web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"reference": "originals/C# one.mid", "estimate": "mine/C# one.mid", "id": "whole"},
        {"reference": f"{web.url}/originals/deep/two.mid", "estimate": "mine/deep/two.mid", "id": "by address"},
        {"reference": "originals/four.flac", "estimate": "mine/none.flac", "id": "missing"},
        {"reference": "originals/four.flac", "estimate": "mine/closed.flac", "id": "closed"},
        {"reference": "originals/four.flac", "estimate": "mine/noise.flac", "id": "noise"},
        {"reference": "originals/four.flac", "estimate": "s3://bucket/four.flac", "id": "no package"},
    ]
    web.files["list.jsonl"] = "\n".join(map(json.dumps, rows)).encode()
    web.files["mine/noise.flac"] = b"this is no music\n" * 100
    web.statuses["mine/closed.flac"] = 403
    monkeypatch.setitem(sys.modules, "s3fs", None)
    run = judged(tmp_path / "out", manifest=f"{web.url}/list.jsonl", controls=False, engine="serial")
    assert {item for item, _ in run["names"]} == {"whole", "by address", "noise"}
    assert run["names"]["by address", "list"] == (f"{web.url}/originals/deep/two.mid", "mine/deep/two.mid")
    told = {row["item"]: row["error"] for row in run["results"]["failures"]}
    assert told.keys() == {"missing", "closed", "noise", "no package"}
    assert told["missing"] == f"NoDataError: {web.url}/mine/none.flac: no such file; check the URL"
    assert told["closed"].startswith(f"UnreadableFileError: {web.url}/mine/closed.flac: not found, or access is denied")
    assert told["noise"].startswith(f"UnreadableFileError: estimate: {web.url}/mine/noise.flac: ")
    assert told["no package"].startswith("MissingBackendError: s3:// needs the package 's3fs'")


def test_a_manifest_from_elsewhere_reads_no_file_of_this_machine(web: WebServer, disk: Path, tmp_path: Path) -> None:
    for cell in (str(disk / "mine/four.flac"), f"file://{disk}/mine/four.flac", "../../../etc/passwd"):
        web.files["list.csv"] = f"reference,estimate\noriginals/four.flac,{cell}\n".encode()
        with pytest.raises(InvalidInputError, match=r"list\.csv, row 1: "):
            pairs_in_manifest(f"{web.url}/list.csv")
    mine = tmp_path / "list.csv"  # one that lies here names what it likes
    mine.write_text(f"reference,estimate\n{web.url}/originals/four.flac,file://{disk}/mine/four.flac\n")
    (pair,) = pairs_in_manifest(mine).pairs
    assert pair.estimate.path == str(disk / "mine/four.flac")
    assert pair.reference.path == f"{web.url}/originals/four.flac"
    assert pair.item == f"{web.url}/originals/four"


def test_a_dataset_names_files_at_urls(web: WebServer, tmp_path: Path) -> None:
    rows = {side: [f"{web.url}/{side}/four.flac"] for side in ("originals", "mine")}
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table(rows), tmp_path / "data" / "test-00000-of-00001.parquet")
    columns = Columns("originals", "mine")
    (pair,) = pairs_of_dataset(str(tmp_path), None, "test", columns, folder=tmp_path / "written").pairs
    assert pair.reference.path == pair.reference.name == rows["originals"][0]
    assert pair.estimate.content.startswith("url:")


def test_no_secret_is_recorded(web: WebServer, tmp_path: Path) -> None:
    manifest = tmp_path / "list.csv"
    for cell in ("https://me:SECRET@host/a.wav", "https://host/a.wav?token=SECRET"):
        manifest.write_text(f"reference,estimate\n{web.url}/originals/four.flac,{cell}\n")
        with pytest.raises(InvalidInputError, match="may hold secrets") as told:
            PRESERVATION.run(Settings(tmp_path / "out", manifest=manifest))
        assert "SECRET" not in str(told.value)
        assert not (tmp_path / "out").exists()


def test_what_was_given_is_found_or_named(web: WebServer, disk: Path) -> None:
    named = pairs_in_folders(f"{web.url}/originals", [f"x={web.url}/mine/"])
    assert named.systems == ("x",)
    assert named.dataset["id"] == "originals"
    mixed = pairs_in_folders(disk / "originals", [f"{web.url}/mine"])
    assert mixed.systems == ("mine",)
    assert len(mixed.pairs) == 4
    with pytest.raises(NoDataError):
        pairs_in_folders(f"{web.url}/nothing", [f"{web.url}/mine"])
    web.statuses["closed/"] = 403
    with pytest.raises(UnreadableFileError, match="access is denied"):
        pairs_in_folders(f"{web.url}/closed/", [f"{web.url}/mine"])


def test_results_and_features_are_no_urls(tmp_path: Path) -> None:
    for change in ({"out": "s3://bucket/out"}, {"features": "s3://bucket/features"}):
        with pytest.raises(InvalidInputError, match="must be a path, on this machine or a shared file system"):
            Settings(**{"out": tmp_path, "manifest": "list.csv", **change})
