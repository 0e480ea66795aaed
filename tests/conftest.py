"""What every test stands on: no network, a home of its own for caches, seeded randomness."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# The Hugging Face packages read these once, at their first import: they are set before any test module is.
_CACHE = tempfile.mkdtemp(prefix="music_evals_tests_")
atexit.register(shutil.rmtree, _CACHE, ignore_errors=True)
os.environ.update(
    HF_HOME=_CACHE,
    HF_HUB_OFFLINE="1",
    HF_DATASETS_OFFLINE="1",
    HF_EVALUATE_OFFLINE="1",
    HF_HUB_DISABLE_TELEMETRY="1",
    HF_UPDATE_DOWNLOAD_COUNTS="0",
    HF_HUB_DISABLE_PROGRESS_BARS="1",
    GRADIO_ANALYTICS_ENABLED="False",
    RAY_USAGE_STATS_ENABLED="0",
    MPLBACKEND="Agg",
)
if "PYTEST_XDIST_WORKER" in os.environ:
    # as many processes as processors: threads of each would wait, spinning, for those of the others
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    # processes that fill one cache of numba together break it for good (music_evals.compiling)
    _own_code = Path(__file__).parents[1] / ".pytest_cache" / f"numba-{os.environ['PYTEST_XDIST_WORKER']}"
    os.environ["NUMBA_CACHE_DIR"] = str(_own_code)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # processes that tests start would compile the package each time
for _variable in ("HF_DATASETS_CACHE", "HF_METRICS_CACHE", "HF_EVALUATE_CACHE", "HF_MODULES_CACHE", "HF_HUB_CACHE"):
    os.environ.pop(_variable, None)

import hypothesis  # noqa: E402  (after the environment)
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from tests.conformance.rules import CORE_ALONE  # noqa: E402

hypothesis.settings.register_profile("dev", max_examples=25, deadline=None)
hypothesis.settings.register_profile("ci", max_examples=25, deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.register_profile("thorough", max_examples=1_000, deadline=None)  # HYPOTHESIS_PROFILE=thorough
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


REQUIRED = os.environ.get("MUSIC_EVALS_REQUIRE", "").split(",")
"""System packages whose tests must not skip: CI has installed them."""


UNTIL = float(os.environ.get("MUSIC_EVALS_TESTS_UNTIL", "inf"))
"""Seconds since 1970; a test that would begin later skips. Set by `.ci/run` for the slow tests, nowhere else."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[Any]:
    """Leave out what would begin after CI's time; the error of a shared fixture comes here from the second test on."""
    if time.time() > UNTIL:
        item.add_marker(pytest.mark.skip(reason="the time of CI is over: .ci/run slow"))
    return (yield from _skipped_without_extra())


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[Any]:
    return (yield from _skipped_without_extra())


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Iterator[Any]:
    return (yield from _skipped_without_extra())


def _skipped_without_extra() -> Iterator[Any]:
    from music_evals.errors import MissingBackendError

    try:
        return (yield)
    except (MissingBackendError, ModuleNotFoundError) as error:
        oracle = getattr(error, "name", None) in {"librosa", "torch"}  # imported by the test itself
        if CORE_ALONE and (oracle or isinstance(error, MissingBackendError)):
            pytest.skip(f"needs an extra: {error}")
        raise


@pytest.fixture(scope="session")
def fluidsynth() -> None:
    """Skip the test where FluidSynth or a soundfont is absent."""
    from music_evals.annotations import Score
    from music_evals.audio.rendering import render_fluidsynth
    from music_evals.errors import MissingBackendError
    from music_evals.symbolic.midi import write_midi
    from music_evals.symbolic.notes import make_notes

    try:
        render_fluidsynth(write_midi(Score(make_notes([0], [10], [60], 90), 24)))
    except MissingBackendError as error:
        if "fluidsynth" in REQUIRED:
            raise
        pytest.skip(str(error))


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator with a fixed seed, fresh for each test."""
    return np.random.default_rng(20_220_711)


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Tiny networks run on one thread: more would only slow them down."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def without_essentia(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the extractors believe that essentia is not installed, wherever it is."""
    import importlib.metadata

    from music_evals.audio import backends

    def version(package: str) -> str:
        if package == "essentia":
            raise importlib.metadata.PackageNotFoundError(package)
        return importlib.metadata.version(package)

    monkeypatch.setattr(backends, "_version", version)


@pytest.fixture
def in_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run the test from the root of the repository, as `./metrics/<name>` asks for."""
    monkeypatch.chdir(root)
    return root


TINY_README = """---
configs:
- config_name: musib
  default: true
  data_files:
  - {split: train, path: "data/musib/train-*.parquet"}
  - {split: validation, path: "data/musib/validation-*.parquet"}
  - {split: test, path: "data/musib/test-*.parquet"}
- config_name: musib_official
  data_files:
  - {split: validation, path: "data/musib_official/validation-*.parquet"}
  - {split: test, path: "data/musib_official/test-*.parquet"}
---
"""
TINY_SPLITS = {
    ("musib", "train"): 24, ("musib", "validation"): 12, ("musib", "test"): 70,
    ("musib_official", "validation"): 6, ("musib_official", "test"): 6,
}  # fmt: skip


def tiny_melody(rng: np.random.Generator) -> list[int]:
    """384 tokens of quarter and half notes on a random walk, with some rests."""
    tokens: list[int] = []
    pitch = 67
    while len(tokens) < 384:
        length = int(rng.choice([6, 6, 12]))
        pitch = int(np.clip(pitch + rng.integers(-3, 4), 55, 80))
        tokens += [129] * length if rng.random() < 0.1 else [pitch] + [128] * (length - 1)
    return tokens[:384]


@pytest.fixture(scope="session")
def tiny_dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small generated dataset of the layout of `jsb_chorales`: the folder, to be given as a path."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(7)
    folder = tmp_path_factory.mktemp("window") / "tiny"
    for (config, split), n in TINY_SPLITS.items():
        table = pa.table(
            {
                "item_id": [f"{config}/{split}/{row:03d}" for row in range(n)],
                "song": [f"song {row // 4}" for row in range(n)],
                "tokens": pa.array([tiny_melody(rng) for _ in range(n)], pa.list_(pa.uint8())),
                "seen_in_train": [row % 5 == 0 for row in range(n)],
                "near_train": [1.0 if row % 5 == 0 else row % 15 / 16 for row in range(n)],
                "repeats_in_context": pa.array([row % 17 / 16 for row in range(n)], pa.float32()),
                "voice": [("soprano", "bass")[row % 2] for row in range(n)],
            }
        )
        path = folder / "data" / config / f"{split}-00000-of-00001.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path)
    (folder / "README.md").write_text(TINY_README, encoding="utf-8")
    return folder


STUB_JUDGE = r'''
import dataclasses
import os
from pathlib import Path

from music_evals.benchmark.tasks.preservation.pairs import CONTROLS
from music_evals.errors import UnreadableFileError


@dataclasses.dataclass
class StubJudge:
    """Compares files that hold numbers: metric i is 1 - |a - b| / (i + 1); words in a file do what they say."""

    scores: tuple

    def __call__(self, pair):
        first, second = (Path(side.path).read_text() for side in (pair.reference, pair.estimate))
        if "count" in os.environ.get("STUB", ""):
            with Path(os.environ["STUB_LOG"]).open("a") as log:
                log.write(f"{os.getpid()} {Path(pair.estimate.path).name}\n")
        if second == "die":
            os._exit(3)
        if second == "crash":
            import ctypes
            ctypes.string_at(0)
        if second == "kill parent":
            import signal, time
            while len(list(Path(os.environ["STUB_RECORDS"]).glob("*.parquet"))) < 3:  # header, pairs, scores
                time.sleep(0.02)  # some of what was answered before is on the disk then
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
        if second == "bug":
            raise KeyError("a bug")
        if second == "unreadable":
            raise UnreadableFileError("estimate: it is noise")
        scores = {}
        for number, name in enumerate(self.scores, start=1):
            if second == "undefined" or first == "undefined":
                scores[name] = {"value": None, "reason": "reference: silent"}
            elif second == "half":
                scores[name] = {"value": 1.0} if number % 2 else {"error": "MissingBackendError: none"}
            else:
                scores[name] = {"value": max(0.0, 1 - abs(float(first) - float(second)) / number)}
        sides = () if pair.system in CONTROLS else (pair.reference, pair.estimate)
        drawn = {side.content: {"duration_sec": 30.0, "beats": [0.5, 1.0, 1.5]} for side in sides}
        return {"scores": scores, "notes": ["short"] if second == "0.25" else [], "outlines": drawn}
'''


@pytest.fixture
def stub_judge(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A judge that compares files of numbers, in place of one that listens to music; takes the names of its scores."""
    import importlib

    folder = tmp_path_factory.mktemp("stub")
    (folder / "stub_preservation.py").write_text(STUB_JUDGE)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("MUSIC_EVALS_CACHE", str(folder / "cache"))
    yield importlib.import_module("stub_preservation").StubJudge
    sys.modules.pop("stub_preservation", None)


@pytest.fixture
def write_files(tmp_path: Path) -> Any:
    """Write texts, relative path -> content, below a folder of the test; return the folder."""

    def write(folder: str, files: dict[str, str]) -> Path:
        for name, content in files.items():
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return tmp_path / folder

    return write


POEMS = {
    "静夜思": (("床前明月光", "疑是地上霜", "举头望明月", "低头思故乡"), ("ccccR", "ccccR", "ccccc", "ccccR")),
    "登鹳雀楼": (("白日依山尽", "黄河入海流", "欲穷千里目", "更上一层楼"), ("ccccc", "ccccR", "ccccc", "ccccR")),
    "春晓": (("春眠不觉晓", "处处闻啼鸟", "夜来风雨声", "花落知多少"), ("ccccR", "ccccR", "ccccc", "ccccR")),
    "相思": (("红豆生南国", "春来发几枝", "愿君多采撷", "此物最相思"), ("ccccc", "ccccR", "ccccc", "ccccR")),
}
"""Poems of the Tang, with their patterns by hand."""

SONGS = {
    "s1": ("静夜", "甲", {"verse1": "静夜思", "chorus1": "登鹳雀楼"}),
    "s2": ("登楼", "乙", {"verse1": "登鹳雀楼", "chorus1": "春晓", "ending1": "相思"}),
    "s3": ("春", "丙", {"intro1": "春晓", "verse1": "静夜思", "chorus1": "相思"}),
    "s4": ("春", "丙", {"verse1": "相思", "chorus1": "静夜思"}),
}
"""Songs of these poems; the last two have one title and one performer."""

WORDS = ("抒情", "思乡", "安静", "明亮", "缓慢")


def _song_rows() -> list[dict[str, Any]]:
    from music_evals.annotations import DIMENSIONS

    rows = []
    for number, (item, (title, artist, sections)) in enumerate(SONGS.items()):
        structure = [
            {"label": label, "type": label[:-1], "lines": list(POEMS[poem][0]), "rhyme": list(POEMS[poem][1])}
            for label, poem in sections.items()
        ]
        described = {
            group: {
                "overall_text": "",
                "dimensions": {
                    name: {"tags": [WORDS[(number + place) % 5], WORDS[(number + 2 * place) % 5]], "text": None}
                    for place, name in enumerate(names)
                },
            }
            for group, names in DIMENSIONS.items()
        }
        described["professional"]["dimensions"]["lyric_themes"]["text"] = f"歌词写{title}。"
        rows.append({"id": item, "title": title, "artist": [artist], "structure": structure, **described})
    return rows


def _write_songs(folder: Path, rows: list[dict[str, Any]]) -> Path:
    import json

    path = folder / "songs.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def song_rows() -> list[dict[str, Any]]:
    """Four rows in the schema of CaiMD."""
    return _song_rows()


@pytest.fixture
def songs_file(tmp_path: Path, song_rows: list[dict[str, Any]]) -> Path:
    """A file of `song_rows`."""
    return _write_songs(tmp_path, song_rows)


@pytest.fixture(scope="session")
def songs_of_all(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same file for runs that several tests share; none writes to it."""
    return _write_songs(tmp_path_factory.mktemp("songs"), _song_rows())


@pytest.fixture
def settings(tiny_dataset: Path, tmp_path: Path) -> dict[str, Any]:
    """Settings of a small run."""
    return {"out": tmp_path / "out", "dataset": str(tiny_dataset), "config": "musib", "n_seeds": 2, "n_resamples": 50}


@pytest.fixture(scope="session")
def inpainting_run_of_all(tiny_dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of inpainting for all tests that only read it: the stored predictions `mine`, and three baselines."""
    import json

    from music_evals.benchmark.tasks.inpainting.items import load_items
    from music_evals.benchmark.tasks.inpainting.task import INPAINTING, Settings

    folder = tmp_path_factory.mktemp("inpainting_run")
    items = load_items(str(tiny_dataset), "musib", "test")
    copies = zip(items.item_ids, items.contexts[:, 240:336].tolist(), strict=True)  # what follows the gap
    rows = [json.dumps({"item_id": item, "middle": middle}) for item, middle in copies]
    (folder / "mine.jsonl").write_text("\n".join(rows), encoding="utf-8")
    options: dict[str, Any] = {"predictions": folder / "mine.jsonl", "n_seeds": 2, "n_resamples": 20}
    options |= {"baselines": "silence,copy_past,markov", "report": False}
    INPAINTING.run(Settings(folder / "out", dataset=str(tiny_dataset), config="musib", **options))
    return folder / "out"


@pytest.fixture
def inpainting_run(inpainting_run_of_all: Path, tmp_path: Path) -> Path:
    """The same, a copy of the test's own."""
    return Path(shutil.copytree(inpainting_run_of_all, tmp_path / "inpainting_run"))


@pytest.fixture(scope="session")
def preservation_run_of_all(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of preservation for all tests that only read it: three scores, of which `up` transposes the second."""
    from music_evals.annotations import Score
    from music_evals.benchmark.tasks.preservation.task import PRESERVATION, Settings
    from music_evals.symbolic.midi import save_midi
    from music_evals.symbolic.notes import make_notes

    folder = tmp_path_factory.mktemp("preservation_run")
    tune = np.array([60, 62, 64, 65, 67, 69, 71, 72] * 8)
    for number, name in enumerate("abc"):
        for side, shift in (("r", 0), ("e", 7 * (number % 2))):
            path = folder / side / f"{name}.mid"
            path.parent.mkdir(exist_ok=True)
            save_midi(Score(make_notes(np.arange(64) * 480, 480, tune + number + shift), 480), path)
    options: dict[str, Any] = {"metrics": "circle_of_fifths_distance,motif_recall", "companions": "same_mode"}
    options |= {"estimates": (f"up={folder / 'e'}",), "n_resamples": 20, "engine": "serial", "report": False}
    PRESERVATION.run(Settings(folder / "out", reference=folder / "r", **options))
    return folder / "out"


@pytest.fixture
def preservation_run(preservation_run_of_all: Path, tmp_path: Path) -> Path:
    """The same, a copy of the test's own."""
    return Path(shutil.copytree(preservation_run_of_all, tmp_path / "preservation_run"))
