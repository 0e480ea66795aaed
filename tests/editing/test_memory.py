"""How much memory edits need: formulas at the published sizes, and a run that stops before it computes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import soundfile
from tests.editing.house import RATE, recording

from music_evals.benchmark.tasks.edits.task import EDITS, Settings
from music_evals.editing import memory
from music_evals.editing.memory import GIB, MemoryPlan, free_bytes, musicgen_bytes
from music_evals.errors import NotEnoughMemoryError

torch = pytest.importorskip("torch")
from tests.editing.tiny_musicgen import save, tiny_musicgen  # noqa: E402


def test_keys_and_values_of_the_melody_model() -> None:
    """48 layers of 1536 in 16 bits, two rows for the guidance: 1.0 GB for 1755 positions (the fact sheet's figure)."""
    decoder = SimpleNamespace(num_hidden_layers=48, hidden_size=1536, num_codebooks=4)
    codec = SimpleNamespace(frame_rate=50, num_filters=0, sampling_rate=32000)  # aside
    model = SimpleNamespace(
        config=SimpleNamespace(decoder=decoder, audio_encoder=codec),
        decoder=SimpleNamespace(dtype=SimpleNamespace(itemsize=2)),
    )
    n_words = 256  # that the formula leaves room for
    planned = musicgen_bytes(model, 30.0, n_prefix=1755 - 1500 - 4 - n_words + 5)
    assert planned == pytest.approx(1.035e9, rel=0.01)


def test_a_plan_that_does_not_fit_is_refused() -> None:
    plan = MemoryPlan("cuda:0", 3 * GIB, GIB, 2, 7 * GIB)
    assert plan.needed == 8 * GIB
    with pytest.raises(NotEnoughMemoryError, match=r"3.00"):
        plan.check()
    plan._replace(free=8 * GIB).check()
    plan._replace(free=None).check()
    assert "unknown" in plan._replace(free=None).text


def test_what_this_machine_has_left() -> None:
    left = free_bytes("cpu")
    assert left is None or left > 0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    soundfile.write(tmp_path / "song.wav", recording(seconds=0.5).T, RATE)
    return save(tiny_musicgen("musicgen"), tmp_path / "tiny").parent


@pytest.mark.slow
def test_a_run_says_its_plan_and_stops_before_it_edits(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    settings = Settings(
        folder / "out",
        sources=[str(folder / "song.wav")],
        system="musicgen",
        parameters={"text": "instruction"},
        weights={"source": str(folder / "tiny")},
    )
    edits = EDITS.run(settings, tell=said.append)
    assert not edits.failures
    (text,) = said
    assert text.startswith("memory on cpu: 0.00 GiB for the weights and about 0.")
    monkeypatch.setattr("music_evals.editing.system.free_bytes", lambda _: 1000)
    with pytest.raises(NotEnoughMemoryError):
        EDITS.run(settings)


def test_weights_that_are_too_large_are_not_loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda _: 1000)
    with pytest.raises(NotEnoughMemoryError, match=r"0.00"):
        memory.check_stored(folder / "tiny", "cuda")
    memory.check_stored("facebook/musicgen-small", "cuda")
