"""A file that kills its parser must cost an item, and not the process that judges it."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import music_evals.hf as mh
from music_evals.annotations import Score
from music_evals.errors import MissingBackendError, ParserCrashError, UnknownNameError
from music_evals.symbolic.midi import save_midi, write_midi
from music_evals.symbolic.notes import make_notes

CONTEXT = [60, *[128] * 23] * 16
MIDDLE = CONTEXT[:96]

READER = """
import os
from pathlib import Path

from music_evals.errors import MissingBackendError


def deadly(item):
    if isinstance(item, bytes) and len(item) < 20:
        os.abort()
    if isinstance(item, str) and Path(item).stem == "deadly":
        os.abort()
    if isinstance(item, str) and Path(item).stem == "backend":
        raise MissingBackendError("music21", "symbolic", "reading")
    if isinstance(item, str):
        Path(item).with_suffix(".pid").write_text(str(os.getpid()))
    from music_evals.symbolic.midi import read_midi

    return read_midi(item)
"""


class Count(mh.SymbolicMetric):
    """Number of items."""

    def _info(self) -> Any:
        return self.make_info("Number of items.")

    def _compute(self, predictions: list[str], references: list[str]) -> dict[str, Any]:
        return {"count": len(mh.read_pairs(references, predictions).middles)}


@pytest.fixture
def count(tmp_path: Path) -> Count:
    return Count(cache_dir=str(tmp_path / "cache"))


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """A reader that dies on some files, in the place of ours."""
    name = f"deadly_for_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(READER)
    monkeypatch.syspath_prepend(tmp_path)
    module = __import__(name)
    monkeypatch.setattr("music_evals.hf.symbolic.read_file", module.deadly)
    yield module
    del sys.modules[name]


def middle_score() -> Score:
    return Score(make_notes(np.arange(4) * 4 * 480, 4 * 480, 60), 480)


def midi_file(folder: Path, name: str) -> Path:
    save_midi(middle_score(), folder / f"{name}.mid")
    return folder / f"{name}.mid"


@pytest.mark.slow
@pytest.mark.usefixtures("reader")
def test_a_parser_that_dies_costs_one_item(count: Count, tmp_path: Path) -> None:
    good, deadly = midi_file(tmp_path, "good"), midi_file(tmp_path, "deadly")
    with pytest.raises(ParserCrashError, match=r"predictions\[1\]: .*deadly.mid: the parser died"):
        count.add_batch(predictions=[good, deadly], references=[CONTEXT] * 2)
    with pytest.raises(ParserCrashError, match=r"predictions\[0\]: 4 bytes: the parser died"):
        count.add(prediction=b"MThd", reference=CONTEXT)
    with pytest.raises(ParserCrashError, match=r"references\[0\]: "):
        count.add(prediction=MIDDLE, reference={"past": MIDDLE, "middle": deadly, "future": MIDDLE})
    count.add(prediction=good, reference=CONTEXT)
    assert count.compute(predictions=[write_midi(middle_score())], references=[CONTEXT]) == {"count": 2}


@pytest.mark.usefixtures("reader")
def test_one_process_reads_all_that_is_added_and_ends_with_compute(
    count: Count, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [midi_file(tmp_path, name) for name in ("a", "b", "c")]
    count.add(prediction=files[0], reference=CONTEXT)
    monkeypatch.chdir(tmp_path)
    count.add(prediction="b.mid", reference=CONTEXT)  # from where we are, not from where the process started
    count.add_batch(predictions=[files[2], MIDDLE], references=[CONTEXT] * 2)
    assert count.parser is not None
    workers = {file.with_suffix(".pid").read_text() for file in files}
    assert len(workers) == 1
    assert str(os.getpid()) not in workers
    assert count.compute() == {"count": 4}
    assert count.parser is None
    with pytest.raises(ProcessLookupError):
        os.kill(int(workers.pop()), 0)


def test_tokens_need_no_process(count: Count) -> None:
    count.add_batch(predictions=[MIDDLE, np.array(MIDDLE)], references=[CONTEXT] * 2)
    assert count.parser is None
    assert count.compute() == {"count": 2}


@pytest.mark.slow
@pytest.mark.usefixtures("reader")
def test_an_instance_that_is_dropped_takes_its_process_along(tmp_path: Path) -> None:
    dropped = Count(cache_dir=str(tmp_path / "cache"), keep_in_memory=True)
    file = midi_file(tmp_path, "a")
    dropped.add(prediction=file, reference=CONTEXT)
    del dropped
    gc.collect()
    with pytest.raises(ProcessLookupError):
        os.kill(int(file.with_suffix(".pid").read_text()), 0)


@pytest.mark.usefixtures("reader")
def test_errors_of_every_kind_name_the_item(count: Count, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"predictions\[0\]: .*'\.mdi'"):
        count.add(prediction="a.mdi", reference=CONTEXT)
    backend = midi_file(tmp_path, "backend")
    with pytest.raises(MissingBackendError, match=r"predictions\[1\]: .*'music21'"):
        count.add_batch(predictions=[MIDDLE, backend], references=[CONTEXT] * 2)


@pytest.mark.slow
def test_a_script_that_never_computes_ends_in_silence(tmp_path: Path) -> None:
    file = midi_file(tmp_path, "a")
    script = (
        "import sys; sys.modules['transformers'] = None\n"  # evaluate would import it, and torch, for ten seconds
        "import music_evals.hf as mh\n"
        "class M(mh.SymbolicMetric):\n"
        "    def _info(self): return self.make_info('')\n"
        "    def _compute(self, **inputs): return {}\n"
        f"m = M(cache_dir={str(tmp_path)!r})\n"
        f"m.add(prediction={str(file)!r}, reference={CONTEXT!r})\n"
    )
    (tmp_path / "script.py").write_text(script)
    run = subprocess.run(
        [sys.executable, "-W", "error", str(tmp_path / "script.py")], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")
