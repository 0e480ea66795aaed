import subprocess
import sys
from pathlib import Path

import pytest

from music_evals.annotations import Score
from music_evals.errors import (
    InvalidInputError,
    MissingBackendError,
    NoDataError,
    ParserCrashError,
    UnreadableFileError,
)
from music_evals.processes import ReaderProcess
from music_evals.symbolic.files import read_many
from music_evals.symbolic.midi import save_midi
from music_evals.symbolic.notes import make_notes

DEADLY_READERS = """
import ctypes
import os
import sys
import time
from pathlib import Path

from music_evals.errors import MissingBackendError


def deadly(path):
    print("readers may talk")
    name = Path(path).stem
    if name == "abort":
        os.abort()
    if name == "segfault":
        ctypes.string_at(0)
    if name == "hang":
        time.sleep(600)
    if name == "bug":
        raise IndexError("of our own making")
    if name == "exit":
        os._exit(0)
    if name == "backend":
        raise MissingBackendError("music21", "symbolic", "reading")
    if name == "environment":
        return os.environ.get("MUSIC_EVALS_TEST")
    if name == "greedy":
        return len(bytearray(4 * 2**30))
    if name == "numpy":
        import numpy

        return numpy.ones(2**29).sum()
    if name == "lambda":
        return lambda: None
    from music_evals.symbolic.midi import read_midi

    return read_midi(path)


def worker_id(path):
    return os.getpid()
"""


@pytest.fixture
def deadly(tmp_path, monkeypatch):
    """A module with readers that die, on the path of this process and so of the worker's."""
    name = f"deadly_readers_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(DEADLY_READERS)
    monkeypatch.syspath_prepend(tmp_path)
    yield __import__(name)
    del sys.modules[name]


@pytest.fixture
def batch(tmp_path):
    def make(*names):
        paths = [tmp_path / f"{name}.mid" for name in names]
        for index, path in enumerate(paths):
            save_midi(Score(make_notes([0], [1], [index]), 480), path)
        return paths

    return make


@pytest.mark.slow
def test_a_crash_costs_one_file(deadly, batch):
    names = ["one", "abort", "two", "segfault", "bug", "exit", "lambda", "three"]
    results = dict(read_many(batch(*names), reader=deadly.deadly))
    assert [path.stem for path in results] == names
    by_name = {path.stem: result for path, result in results.items()}
    for index, name in enumerate(names):
        if name in {"one", "two", "three"}:
            assert by_name[name].notes["pitch"].tolist() == [index]
        else:
            assert isinstance(by_name[name], ParserCrashError)
            assert f"{name}.mid: the parser died" in str(by_name[name])
    assert "Abort" in str(by_name["abort"])
    assert "egmentation" in str(by_name["segfault"])
    assert "IndexError: of our own making" in str(by_name["bug"])
    assert "exit code 0" in str(by_name["exit"])


@pytest.mark.slow
def test_a_hang_costs_one_file(deadly, batch):
    results = [result for _, result in read_many(batch("one", "hang", "two"), reader=deadly.deadly, timeout_sec=1.0)]
    assert isinstance(results[1], ParserCrashError)
    assert "did not finish within 1 s" in str(results[1])
    assert isinstance(results[0], Score)
    assert isinstance(results[2], Score)


def test_one_worker_reads_all(deadly, batch):
    workers = {result for _, result in read_many(batch("one", "two", "three"), reader=deadly.worker_id)}
    assert len(workers) == 1
    assert workers != {__import__("os").getpid()}


def test_named_errors_come_through(deadly, batch, tmp_path):
    [backend] = batch("backend")
    (tmp_path / "text.mid").write_text("no MIDI")
    paths = [tmp_path / "missing.mid", tmp_path / "text.mid", backend]
    missing, text, no_package = (result for _, result in read_many(paths, reader=deadly.deadly))
    assert type(missing) is NoDataError
    assert type(text) is UnreadableFileError
    assert type(no_package) is MissingBackendError
    assert 'pip install "music21' in str(no_package)


def test_the_worker_ends_when_the_reader_of_results_stops(deadly, batch):
    results = read_many(batch("one", "two"), reader=deadly.worker_id)
    _, pid = next(results)
    results.close()
    assert not Path(f"/proc/{pid}").exists()


def test_no_files_start_no_worker():
    assert list(read_many([])) == []


def test_a_reader_must_be_importable(deadly, batch, tmp_path):
    with pytest.raises(InvalidInputError, match="top of a module"):
        list(read_many(batch("one"), reader=lambda path: path))
    with pytest.raises(InvalidInputError, match="timeout_sec"):
        list(read_many(batch("one"), timeout_sec=0))
    (tmp_path / f"{deadly.__name__}.py").write_text("")
    with pytest.raises(InvalidInputError, match="cannot import the reader"):
        list(read_many(batch("one"), reader=deadly.deadly))


def test_a_script_needs_no_main_guard(batch, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom music_evals.symbolic.files import read_many\n"
        "print([len(score.notes) for _, score in read_many(sys.argv[1:])])\n"
    )
    run = subprocess.run(
        [sys.executable, str(script), *map(str, batch("one", "two"))], capture_output=True, text=True, check=True
    )
    assert run.stdout == "[1, 1]\n"


def test_a_process_has_its_own_variables_and_its_death_is_told_in_the_callers_words(deadly):
    process = ReaderProcess(deadly.deadly, environment={"MUSIC_EVALS_TEST": "set"}, label="process")
    try:
        assert process.read("environment.mid") == "set"
        died = process.read("exit.mid", name="song (zeta)")
    finally:
        process.close()
    assert isinstance(died, ParserCrashError)
    assert str(died).startswith("song (zeta): the process died (")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux counts all private memory as data")
def test_a_process_may_take_so_much_memory_and_no_more(deadly):
    process = ReaderProcess(deadly.deadly, memory_bytes=2 * 2**30)
    try:
        for name in ("greedy", "numpy"):
            died = process.read(f"{name}.mid")
            assert isinstance(died, ParserCrashError)
            assert "it needs more than the 2 GiB of memory that it may take; exit code 1" in str(died)
        assert process.read("environment.mid") is None
    finally:
        process.close()
    with pytest.raises(InvalidInputError, match="memory_bytes"):
        ReaderProcess(deadly.deadly, memory_bytes=0)
