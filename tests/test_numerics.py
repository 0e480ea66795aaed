"""Linear algebra in one thread: what is recorded does not depend on how many there are."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import threadpoolctl

from music_evals.numerics import kernels, n_cores, n_threads, one_thread

HASWELL = "Haswell"  # kernels of OpenBLAS that round a sum in another order where it is cut in two


def all_digests(seconds: int) -> dict[str, Any]:
    """Every number that is recorded and that a product of matrices or a network goes into, with 1 thread and with 4."""
    import numpy as np
    import torch

    from music_evals.annotations import FEATURES, StructureFrames
    from music_evals.audio.extraction import extract
    from music_evals.audio.io import load_audio
    from music_evals.metrics.semantics import cosine_matrix
    from music_evals.metrics.structure import ssm_correlation
    from music_evals.models.anticipation_rnn import AnticipationRNN, AnticipationRNNConfig

    rng, rate = np.random.default_rng(0), 22050
    times = np.arange(seconds * rate) / rate
    steps = np.array([0, 4, 7, 12, 5, 9])[(2 * times).astype(int) % 6]
    noisy = np.sin(2 * np.pi * 220 * 2 ** (steps / 12) * times) + 0.05 * rng.standard_normal(len(times))
    sides = [StructureFrames(rng.random((13, 1501)), 0.2) for _ in range(2)]
    vectors = rng.standard_normal((2, 301, 257)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    torch.manual_seed(0)
    model = AnticipationRNN(AnticipationRNNConfig())
    contexts = rng.integers(40, 90, (17, 384)).astype(np.uint8)

    def numbers() -> Iterator[tuple[str, Any]]:
        features = extract(load_audio(noisy, rate=rate))
        for name in FEATURES:
            for field, array in getattr(features, name).to_arrays().items():
                yield f"{name}.{field}", array
        official = extract(load_audio(noisy, rate=rate), ["chroma"], backends={"chroma": "librosa_cqt"})
        yield "official chroma", official.chroma.frames
        yield "ssm_correlation", np.array(ssm_correlation(*sides))
        yield "cosines", cosine_matrix(*vectors)
        yield "nll", model.nll(contexts)
        yield "middles", model.inpaint(contexts, rng=np.random.default_rng(0))

    digests: dict[str, list[str]] = {}
    before = torch.get_num_threads()
    for number in (1, 4):
        torch.set_num_threads(number)
        with threadpoolctl.threadpool_limits(number):
            for name, array in numbers():
                digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:8]
                digests.setdefault(name, []).append(digest)
    torch.set_num_threads(before)
    libraries = threadpoolctl.threadpool_info()
    cores = sorted({library["architecture"] for library in libraries if "architecture" in library})
    return {"cores": cores, "numbers": digests}


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"}


@pytest.mark.parametrize("kernel", [None, pytest.param(HASWELL, marks=pytest.mark.slow)])
def test_the_number_of_threads_changes_no_number(kernel: str | None) -> None:
    """Other kernels in a process of their own: they are chosen when the library is loaded."""
    if kernel:
        environment = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
        environment |= {"OPENBLAS_CORETYPE": kernel, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        code = "import json; from tests.test_numerics import all_digests; print(json.dumps(all_digests(30)))"
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
    else:
        told = all_digests(10)
    if kernel and told["cores"]:  # no name where NumPy was built on another library than OpenBLAS
        assert told["cores"] == [kernel]
    assert {"chords.labels", "official chroma", "ssm_correlation", "cosines", "nll", "middles"} <= told[
        "numbers"
    ].keys()
    assert {name: digests for name, digests in told["numbers"].items() if len(set(digests)) > 1} == {}


@pytest.fixture
def three_threads():
    kernels()  # all libraries are there
    with threadpoolctl.threadpool_limits(3, user_api="blas"):
        if blas_threads() != {3}:
            pytest.skip("this library of linear algebra cannot be told how many threads to take")
        yield


@pytest.mark.usefixtures("three_threads")
class TestOneThread:
    def test_inside_there_is_one_and_afterwards_as_many_as_before(self):
        with one_thread():
            assert blas_threads() == {1}
            with one_thread():
                assert blas_threads() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == {3}

    def test_an_error_inside_gives_the_threads_back(self):
        with pytest.raises(KeyError), one_thread():
            raise KeyError
        assert blas_threads() == {3}

    def test_who_leaves_first_takes_nothing_from_who_is_still_inside(self):
        """The number belongs to the process: a limit for each would be lifted by the first to leave."""
        inside, leave = threading.Event(), threading.Event()

        def first() -> None:
            with one_thread():
                inside.set()
                leave.wait(60)

        other = threading.Thread(target=first)
        other.start()
        inside.wait(60)
        with one_thread():
            leave.set()
            other.join()
            assert blas_threads() == {1}
        assert blas_threads() == {3}

    def test_it_holds_in_a_thread_that_is_not_the_first(self):
        """threadpoolctl hears one thread only, here the test's own: its limit is set around it."""
        seen = []

        def ask() -> None:
            with one_thread():
                seen.append(blas_threads())
            seen.append(blas_threads())

        other = threading.Thread(target=ask)
        other.start()
        other.join()
        assert seen == [{1}, {3}]

    def test_networks_run_in_one_thread_too(self):
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(3)
        try:
            with one_thread():
                assert torch.get_num_threads() == 1
            assert torch.get_num_threads() == 3
        finally:
            torch.set_num_threads(before)


@pytest.mark.slow
def test_a_library_that_is_loaded_later_is_held_too() -> None:
    code = """
from music_evals.numerics import one_thread
with one_thread():
    pass
import torch
torch.set_num_threads(3)
before = torch.get_num_threads()
with one_thread():
    print(before, torch.get_num_threads())
print(torch.get_num_threads())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.split() == ["3", "1", "3"]


@pytest.mark.parametrize(("told", "expected"), [("1", 1), ("2", 2), ("0", 1), ("", 4), ("many", 4), ("64", 4)])
def test_a_process_works_on_as_many_items_as_it_may(monkeypatch: pytest.MonkeyPatch, told: str, expected: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    assert n_threads() == expected
    assert n_cores() == 4


def test_kernels_are_named_by_what_the_libraries_chose() -> None:
    command = [sys.executable, "-c", "from music_evals.numerics import kernels; print(kernels())"]
    environment = {**os.environ, "OPENBLAS_CORETYPE": HASWELL}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    if "OpenBLAS" in kernels():
        assert "OpenBLAS Haswell, " in done.stdout
    assert platform.machine() in kernels()
    assert len(kernels().split(", ")) == 3
