from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path

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
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports of inpainting have no pictures, where something else of them is looked at."""
    monkeypatch.setattr("music_evals.benchmark.tasks.inpainting.report._pictures", lambda *_: [])


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
