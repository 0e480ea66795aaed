"""What can be known before anything runs on Ray: the schedule, the address, the chunks."""

from __future__ import annotations

import re
import socket
import time
from pathlib import Path

import pytest

from music_evals.benchmark.engines import Unit, on_ray
from music_evals.benchmark.engines.cluster import _chunks, check_address, schedule
from music_evals.benchmark.run import Settings
from music_evals.errors import BackendError, InvalidInputError

pytest.importorskip("ray", reason="needs the extra scale")


@pytest.mark.parametrize(
    ("cpus", "workers", "found"),
    [([2, 2], None, 4), ([0, 2, 2], 3, 3), ([1], 1, 1), ([2.5, 1.5], None, 3), ([0, 16], 16, 16)],
)
def test_a_schedule_that_can_progress(cpus: list[float], workers: int | None, found: int) -> None:
    assert schedule([{"CPU": n, "memory": 1e9} for n in cpus], workers) == found


@pytest.mark.parametrize(
    ("cpus", "workers", "message"),
    [
        (
            [2, 2],
            5,
            "`workers` 5 cannot all start on this Ray cluster, .* have 2, 2, which is room for 4; ask for at most",
        ),
        (
            [0.5, 0.5],
            1,
            "each takes 1 CPU of one node, the nodes have 0.5, 0.5, .* room for 0; add nodes with at least 1",
        ),
        ([1.5, 1.5], 3, "room for 2; ask for at most 2, or add nodes"),
        ([0], None, "a worker cannot start on this Ray cluster"),
        ([], None, "the nodes have no nodes"),
    ],
)
def test_a_schedule_that_cannot_progress_is_refused(cpus: list[float], workers: int | None, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        schedule([{"CPU": n} if n else {} for n in cpus], workers)


def test_half_a_processor_a_worker_is_a_schedule_too() -> None:
    assert schedule([{"CPU": 1}, {"CPU": 1}], cpus=0.5) == 4


@pytest.mark.parametrize("address", ["auto", "local", "10.0.0.1:6379", "head.cluster:6379", "[::1]:6379"])
def test_an_address(address: str) -> None:
    check_address(address)


@pytest.mark.parametrize(
    "address", ["", "10.0.0.1", "http://head:8265", "ray://head:10001", "head:port", "two heads:1"]
)
def test_what_is_no_address_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(InvalidInputError, match="`ray_address`"):
        check_address(address)
    if address:
        with pytest.raises(InvalidInputError, match=re.escape(address)):
            Settings(tmp_path, engine="ray", ray_address=address)


def test_an_address_goes_with_the_engine(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="`ray_address`"):
        Settings(tmp_path, engine="local", ray_address="auto")
    with pytest.raises(InvalidInputError, match="`ray_address`"):
        Settings(tmp_path, ray_address="auto")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_where_no_cluster_answers_is_one_error() -> None:
    address = f"127.0.0.1:{free_port()}"
    start = time.monotonic()
    with pytest.raises(BackendError, match=f"no Ray cluster answers at {address}: .*refused; start its head"):
        list(on_ray([Unit(1, "one")], len, address=address))
    assert time.monotonic() - start < 30


@pytest.mark.parametrize(
    ("places", "workers", "sizes"),
    [
        (["a"] * 3 + ["b"] * 3, 2, {3}),  # the edits of two originals
        (["a"] * 100, 4, {25}),  # the edits of one, so that nobody is idle
        ([f"{n // 2}" for n in range(640)], 4, {10}),
        ([""] * 640, 4, {10}),
        ([""] * 20, 4, {1}),
        ([""] * 10_000, 2, {256, 10_000 % 256}),  # what is lost with a worker is bounded
    ],
)
def test_chunks_hold_every_unit_once_and_keep_places_together(places: list[str], workers: int, sizes: set[int]) -> None:
    asked = [Unit(number, "", place) for number, place in enumerate(places)]
    chunks = _chunks(asked, workers, alone=False)
    assert sorted(sent.number for chunk in chunks for sent in chunk) == list(range(len(places)))
    assert {len(chunk) for chunk in chunks} == sizes
    assert {len(chunk) for chunk in _chunks(asked[:50], workers, alone=True)} == {1}


def test_no_units_need_no_cluster() -> None:
    assert list(on_ray([], len, address="nowhere:1")) == []
