"""Every GPU call of every Space: what goes in and out can be pickled, no weights are read inside, seconds follow."""

from __future__ import annotations

import ast
import functools
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.writing import build_model
from tests.zero_gpu import Muffler, ZeroGPU

import music_evals.ui
from music_evals.protocols import EDITORS
from music_evals.ui.gpu import START_SEC

ROOT = Path(__file__).resolve().parents[3]
pytest.importorskip("torch")
Patch = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def _a_card(monkeypatch: Patch) -> None:
    for name in ("MUSIC_EVALS_ORG", "SPACE_AUTHOR_NAME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def outside(monkeypatch: Patch, zero_gpu: ZeroGPU) -> list[str]:
    """How weights were read; inside of a call it fails."""
    import safetensors
    import safetensors.torch

    opened: list[str] = []

    def watch(read: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(read)
        def reading(*values: Any, **options: Any) -> Any:
            assert not zero_gpu.is_inside, "weights are read while the card waits"
            opened.append(read.__name__)
            return read(*values, **options)

        return reading

    for module in list(sys.modules.values()):
        for name in ("load_model", "load_file", "safe_open"):
            if (read := getattr(safetensors.torch, name, None)) and getattr(module, name, None) is read:
                monkeypatch.setattr(module, name, watch(read))
    return opened


def fill_a_gap(_folder: Path, _monkeypatch: Patch) -> int:
    from music_evals.ui.spaces import gap_filling
    from music_evals.ui.spaces.gap_filling import find_places
    from music_evals.ui.spaces.melody_sources import example

    request = gap_filling.Request("sketchnet", n_candidates=2, sketch="rhythm", seed=3)
    last = list(gap_filling.fill(find_places(ROOT), example("Ode to Joy"), request))[-1]
    assert len(last.candidates) == 2
    assert last.complete
    return 2 * 2 * 96  # at most: two draws of a token for each of 96 steps, for two candidates


def rewrite_a_piece(folder: Path, monkeypatch: Patch) -> int:
    from music_evals.annotations import Score, TimeSignature
    from music_evals.models.bmst import BMST, BMSTConfig
    from music_evals.symbolic.midi import save_midi
    from music_evals.symbolic.notes import make_notes
    from music_evals.ui.spaces import style_transfer

    config = BMSTConfig(style="bach", window=8, embedding=8, n_layers=1, n_heads=2, inner=8, context=3, pitch_width=4)
    BMST(config).save_pretrained(folder / "models/bmst")
    (folder / "examples/midi").mkdir(parents=True)
    notes = make_notes([0, 480, 0], [480, 480, 960], [72, 74, 48], 70, [0, 0, 1])
    save_midi(
        Score(notes, 480, (TimeSignature(0, 4, 4),), voices=("Melody", "Bass")), folder / "examples/midi/tune.mid"
    )
    monkeypatch.setattr(style_transfer, "player", lambda *_: "")
    sweeps = list(style_transfer.rewrite(folder, None, "tune", "", "bmst:bach", 2, 1))
    assert len(sweeps) == 2
    return 32  # passes, four in each of the eight steps of two quarters


def edit_a_recording(folder: Path, monkeypatch: Patch) -> int:
    from music_evals.ui.spaces import editing, preservation_examples

    monkeypatch.setitem(EDITORS, "muffler", "tests.zero_gpu:Muffler")
    monkeypatch.setenv(editing.VARIABLE, f"muffler={folder}")
    Muffler.made.clear()
    upload = preservation_examples.write_examples(folder)[0].original
    wishes = editing.Wishes("muffler", "level=0.25", accepted=True)
    stages = [stage.text for stage in itertools.islice(editing.edit_upload(upload, wishes), 3)]
    assert stages[-1].startswith("Comparing")
    (made,) = [editor for editor in Muffler.made if editor.level == 0.25]  # it is not made again
    assert made.places == ["cpu", "cuda", "cpu"]
    return round(10 * _seconds(upload))


def _seconds(path: str) -> float:
    import soundfile

    return min(float(soundfile.info(path).duration), 30.0)


class Probes:
    """A tagger that cannot be pickled, and whose encoder is loaded when it is first needed."""

    name, groups, suffixes = "probes", ("amateur",), frozenset({".wav"})

    def __init__(self, card: ZeroGPU) -> None:
        self.lock, self.card, self.encoder, self.places = threading.Lock(), card, "", list[str]()

    def from_pretrained(self, *_: Any, **__: Any) -> Probes:
        assert not self.card.is_inside
        return self

    def to(self, device: str) -> None:
        self.places.append(device)

    def describe(self) -> dict[str, Any]:
        assert self.encoder or not self.card.is_inside
        self.encoder = "loaded"
        return {}

    def tag(self, _path: Any) -> dict[str, dict[str, list[str]]]:
        assert (self.encoder, self.places) == ("loaded", ["cuda"])
        return {"amateur": {"song_purpose": ["walking"]}}


def tag_a_recording(folder: Path, monkeypatch: Patch, card: ZeroGPU) -> int:
    import soundfile

    from music_evals.ui.spaces import description

    (folder / "config.json").write_text('{"model_type": "music_tagger"}')
    tagger = Probes(card)
    monkeypatch.setenv(description.TAGGER_VARIABLE, str(folder))
    monkeypatch.setattr(description, "load_plugin", lambda *_: tagger)
    soundfile.write(folder / "a.wav", 0.1 * np.sin(np.arange(8000 * 61) / 7), 8000)
    description.tag_recording(str(folder / "a.wav"))
    assert tagger.places == ["cuda", "cpu"]
    return 3 + 2  # windows of half a minute, and the probes of two groups


def encode_tags(_folder: Path, monkeypatch: Patch) -> int:
    from music_evals.lyrics.embeddings import load_encoder
    from music_evals.ui.spaces import tag_comparison

    plain = load_encoder("char-ngrams")
    weights = SimpleNamespace(
        name="BAAI/bge-large-zh-v1.5", revision="a" * 40, encode=plain.encode, lock=threading.Lock()
    )
    monkeypatch.setattr(tag_comparison, "_bge_commit", lambda: "a" * 40)
    monkeypatch.setattr(tag_comparison, "load_encoder", lambda *_, **__: weights)
    found = tag_comparison.compare({"tags": ["慢速"]}, {"tags": ["慢速"]}, "", weights.name)
    assert found.similarities["tags"].value == pytest.approx(1)
    return 1


def write_lyrics(folder: Path, monkeypatch: Patch) -> int:
    pytest.importorskip("transformers")
    from music_evals.ui.spaces import lyrics as lyric_writing

    monkeypatch.setenv(lyric_writing.VARIABLE, str(build_model(folder / "tiny", room=4096)))
    monkeypatch.setattr(lyric_writing, "MAX_TOKENS", 12)
    assert lyric_writing.written_lyrics("月光", "(verse)\nccccR\nccccR") is not None
    made = lyric_writing._writer.cache_info()
    assert (made.misses, made.hits) == (1, 1)  # read before the call, and found by it
    return 12


USES: dict[str, tuple[Callable[..., int], float]] = {
    "_fill_on_gpu": (fill_a_gap, 0.02),
    "_one_sweep": (rewrite_a_piece, 0.005),
    "_edit_on_gpu": (edit_a_recording, 0.08),
    "_predicted_tags": (tag_a_recording, 1.0),
    "_encode_on_gpu": (encode_tags, 1.0),
    "_answer": (write_lyrics, 0.05),
}
"""Function that takes a card -> what a visitor does that calls it, and the seconds of a network call."""


def decorated() -> Iterator[str]:
    for path in Path(music_evals.ui.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            marks = getattr(node, "decorator_list", [])
            if any("on_gpu" in ast.unparse(mark) for mark in marks):
                yield node.name  # type: ignore[attr-defined]


def test_every_function_that_takes_a_card_is_used_here() -> None:
    assert sorted(decorated()) == sorted(USES)


@pytest.mark.slow
@pytest.mark.parametrize("function", USES)
def test_what_goes_into_a_gpu_call_can_be_pickled(
    zero_gpu: ZeroGPU, outside: list[str], tmp_path: Path, monkeypatch: Patch, function: str
) -> None:
    import torch

    use, call_sec = USES[function]
    before = torch.cuda.is_available
    if function in {"_predicted_tags", "_edit_on_gpu"}:  # of doubles, which can be moved to a card that is not there
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    n_calls = use(tmp_path, monkeypatch, *([zero_gpu] if function == "_predicted_tags" else []))
    monkeypatch.setattr(torch.cuda, "is_available", before)
    assert {call.function for call in zero_gpu.calls} == {function}
    most = 10_000_000 if function == "_edit_on_gpu" else 100_000  # half a minute of samples; never weights
    assert all(call.given < most for call in zero_gpu.calls)
    seconds = {call.seconds for call in zero_gpu.calls}
    assert seconds == {START_SEC + int(np.ceil(n_calls * call_sec))}
    if function in {"_fill_on_gpu", "_one_sweep"}:
        assert outside
