from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

FAKE_PLUGIN = '''
import numpy as np
from music_evals.annotations import MASK, MUSIB_LAYOUT


class Fake:
    """Writes one pitch a beat, drawn at random; says what it was shown."""

    def __init__(self, decoding="sample", temperature=1.0):
        self.decoding, self.temperature = decoding, temperature
        self.name = "fake" if decoding == "sample" else f"fake:{decoding}"
        self.sees_reference = decoding == "teacher_forced"
        self.deterministic = decoding != "sample"

    @classmethod
    def from_pretrained(cls, folder, **options):
        return cls(**options)

    def inpaint(self, contexts, *, rng):
        middle = contexts[:, MUSIB_LAYOUT.middle]
        if self.sees_reference:
            assert (middle != MASK).all(), "a leaking system needs the true middle"
            return middle.copy()
        assert (middle == MASK).all(), "an honest system must not see the middle"
        filled = np.full((len(contexts), 96), 128, dtype=np.uint8)
        filled[:, ::6] = rng.integers(60, 72, (len(contexts), 16))
        return filled

    def nll(self, contexts):
        return np.full((len(contexts), 96), 0.5)
'''


@pytest.fixture
def fake_model(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model folder whose `model_type` is registered for this test."""
    from music_evals.protocols import INPAINTERS

    folder = tmp_path_factory.mktemp("plugin")
    (folder / "fake_plugin.py").write_text(FAKE_PLUGIN)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setitem(INPAINTERS, "fake", "fake_plugin:Fake")
    model = folder / "fake_model"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "fake"}')
    (model / "model.safetensors").write_bytes(b"weights")
    yield model
    sys.modules.pop("fake_plugin", None)


@pytest.fixture
def settings(tiny_dataset: Path, tmp_path: Path) -> dict[str, Any]:
    """Settings of a small run."""
    return {"out": tmp_path / "out", "dataset": str(tiny_dataset), "config": "musib", "n_seeds": 2, "n_resamples": 50}


STUB_WORKER = r'''
import json
import os
from pathlib import Path

from music_evals.errors import UnreadableFileError


def answer(message):
    """Compare files that hold numbers: metric i is 1 - |a - b| / (i + 1); words in a file do what they say."""
    task = json.loads(message)
    first, second = (Path(task[side]["path"]).read_text() for side in ("reference", "estimate"))
    if "count" in os.environ.get("STUB", ""):
        with Path(os.environ["STUB_LOG"]).open("a") as log:
            log.write(f"{os.getpid()} {Path(task['estimate']['path']).name}\n")
    if second == "die":
        os._exit(3)
    if second == "crash":
        import ctypes
        ctypes.string_at(0)
    if second == "kill parent":
        import signal, time
        time.sleep(2)  # what was answered before is on the disk by then
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    if second == "bug":
        raise KeyError("a bug")
    if second == "unreadable":
        raise UnreadableFileError("estimate: it is noise")
    scores = {}
    for number, name in enumerate([*task["settings"]["metrics"], *task["settings"]["companions"]], start=1):
        if second == "undefined" or first == "undefined":
            scores[name] = {"value": None, "reason": "reference: silent"}
        elif second == "half":
            scores[name] = {"value": 1.0} if number % 2 else {"error": "MissingBackendError: none"}
        else:
            scores[name] = {"value": max(0.0, 1 - abs(float(first) - float(second)) / number)}
    sides = ("reference", "estimate") if task["outlines"] else ()
    drawn = {task[side]["content"]: {"duration_sec": 30.0, "beats": [0.5, 1.0, 1.5]} for side in sides}
    return {"scores": scores, "notes": ["short"] if second == "0.25" else [], "outlines": drawn}
'''


@pytest.fixture
def stub_worker(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A worker that compares files of numbers, in place of one that listens to music."""
    import importlib

    folder = tmp_path_factory.mktemp("stub")
    (folder / "stub_preservation_worker.py").write_text(STUB_WORKER)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("MUSIC_EVALS_CACHE", str(folder / "cache"))
    yield importlib.import_module("stub_preservation_worker").answer
    sys.modules.pop("stub_preservation_worker", None)


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


VOID = {"meta", "br", "img", "input", "link", "hr"}


class Page(HTMLParser):
    """Checks that elements close in order, and collects ids, attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, (tag, self.open)

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture(scope="session")
def read_page() -> type[Page]:
    """What reads a report and checks that it is sound."""
    return Page
