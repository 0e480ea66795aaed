"""Writers that are paid for: requests a minute, a ceiling of the cost, batches; against servers on loopback."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.writing import POEMS, Server, completion, poem_text, write_songs

from music_evals import cli
from music_evals.benchmark.tasks.songs.generations import BATCHES
from music_evals.benchmark.tasks.songs.lyric_writing import LYRIC_WRITING, Endpoint, Prices, Settings
from music_evals.benchmark.tasks.songs.writing_log import OVERHEAD, Budget
from music_evals.errors import BatchPendingError, CorruptRecordsError, CostCeilingError, InvalidInputError
from music_evals.models.lyric_writers import EndpointWriter

LYRIC = completion(poem_text("spring"), {"prompt_tokens": 1000, "completion_tokens": 40})
PRICES = Prices(2.0, 50.0)
COST = PRICES.cost(1000, 40)
assert COST is not None


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    running.answers((200, LYRIC))
    yield running
    running.close()


def settings(tmp_path: Path, url: str, **options: Any) -> Settings:
    tmp_path.mkdir(exist_ok=True)
    songs = write_songs(tmp_path / "songs.jsonl")
    given: dict[str, Any] = {"retries": 0, "concurrency": 1, "max_tokens": 100, "rhyme": "char", "n_resamples": 20}
    endpoint = Endpoint(url, "poet", prices=options.pop("prices", PRICES))
    return Settings(
        out=tmp_path / "out", dataset=str(songs), endpoints=[endpoint], report=False, controls=False, **given | options
    )


def most_of(body: dict[str, Any]) -> float:
    """Return the most that a request can cost, worked out from what was sent."""
    return (2.0 * (len(body["messages"][0]["content"].encode()) + OVERHEAD) + 50.0 * body["max_tokens"]) / 1e6


def test_requests_are_spaced_evenly(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = {"now": 100.0}
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        clock["now"] += seconds

    from music_evals.models import endpoints

    monkeypatch.setattr(endpoints.time, "monotonic", lambda: clock["now"])
    server.answers((500, "busy", {"Retry-After": "0"}), (200, LYRIC))
    writer = EndpointWriter(server.url, "poet", requests_per_minute=30, retries=1, sleep=sleep)
    writer.write(["one", "two"], seed=0)
    writer.close()
    # three requests, for the first was sent again: the second and third wait for their turn, and the server wishes 0 s
    assert [wait for wait in waits if wait] == pytest.approx([2.0, 2.0])
    assert len(server.requests) == 3
    with pytest.raises(InvalidInputError, match="requests a minute"):
        EndpointWriter(server.url, "poet", requests_per_minute=0)


def test_a_cancelled_writer_does_not_send_what_waits_for_its_turn(server: Server) -> None:
    writer = EndpointWriter(server.url, "poet", requests_per_minute=0.1)
    writer.write(["one"], seed=0)
    threading.Timer(0.1, writer.cancel).start()
    with pytest.raises(OSError, match="cancelled"):
        writer.write(["two"], seed=0)
    assert len(server.requests) == 1
    writer.close()


def test_a_run_stops_before_its_ceiling_and_goes_on_with_a_higher_one(tmp_path: Path, server: Server) -> None:
    LYRIC_WRITING.run(settings(tmp_path / "free", server.url))
    bound = max(most_of(request["body"]) for request in server.requests)
    server.requests.clear()
    ceiling = COST + bound * 1.001  # room for one answer, and for the most that a second can cost; not for a third
    with pytest.raises(CostCeilingError):
        LYRIC_WRITING.run(settings(tmp_path, server.url, max_cost=ceiling))
    assert len(server.requests) == 2
    assert 2 * COST < ceiling < 2 * COST + bound
    with pytest.raises(CostCeilingError):
        LYRIC_WRITING.run(settings(tmp_path, server.url, max_cost=ceiling))  # what was spent is remembered
    assert len(server.requests) == 2
    outcome = LYRIC_WRITING.run(settings(tmp_path, server.url, max_cost=2 * COST + bound * 1.001))
    assert len(server.requests) == 3
    assert outcome.results["writing"]["totals"]["poet"]["cost"] == pytest.approx(3 * COST)


def test_answers_that_do_not_tell_their_tokens_count_with_the_most(tmp_path: Path, server: Server) -> None:
    LYRIC_WRITING.run(settings(tmp_path / "free", server.url))
    bounds = [most_of(request["body"]) for request in server.requests]
    server.requests.clear()
    server.answers((200, completion(poem_text("spring"))))
    with pytest.raises(CostCeilingError):
        LYRIC_WRITING.run(settings(tmp_path, server.url, max_cost=bounds[0] + bounds[1] + bounds[2] / 2))
    assert len(server.requests) == 2


def test_a_ceiling_needs_prices_and_a_limit_of_tokens(tmp_path: Path, server: Server) -> None:
    with pytest.raises(InvalidInputError, match="prices of poet"):
        LYRIC_WRITING.run(settings(tmp_path, server.url, max_cost=1.0, prices=Prices()))
    with pytest.raises(InvalidInputError, match="limit of tokens"):
        LYRIC_WRITING.run(settings(tmp_path, server.url, max_cost=1.0, endpoint_options={"max_tokens": None}))
    with pytest.raises(InvalidInputError, match="ceiling"):
        Budget(0.0)
    assert server.requests == []


def test_many_threads_never_spend_more_than_the_ceiling() -> None:
    budget = Budget(10.0)
    refused: list[bool] = []

    def spend() -> None:
        for _ in range(50):
            try:
                budget.reserve(0.5)
            except CostCeilingError:
                refused.append(True)
            else:
                budget.settle(0.5, 0.25)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert budget.spent <= 10.0
    assert refused
    assert budget.spent > 9.5 - 4 * 0.5


class BatchServer:
    """A stand-in for the batch interface of OpenAI's API: files, batches, contents."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.seen: list[tuple[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                outer.seen.append(("POST", self.path))
                if self.path == "/v1/files":
                    boundary = re.search("boundary=(.+)", self.headers["Content-Type"])
                    assert boundary is not None
                    parts = content.split(b"--" + boundary[1].encode())
                    assert any(b'name="purpose"' in part and part.strip().endswith(b"batch") for part in parts)
                    (file,) = (part for part in parts if b'name="file"' in part)
                    name = f"file-{len(outer.files)}"
                    outer.files[name] = file.split(b"\r\n\r\n", 1)[1].decode().strip()
                    self.answer({"id": name})
                else:
                    asked = json.loads(content)
                    assert asked["endpoint"] == "/v1/chat/completions"
                    name = f"batch-{len(outer.batches)}"
                    outer.batches[name] = {"id": name, "status": "in_progress", "input": asked["input_file_id"]}
                    self.answer(outer.batches[name])

            def do_GET(self) -> None:
                outer.seen.append(("GET", self.path))
                if self.path.startswith("/v1/batches/"):
                    self.answer(outer.batches[self.path.rsplit("/", 1)[1]])
                else:
                    self.answer(outer.files[self.path.split("/")[3]])

            def answer(self, found: dict[str, Any] | str) -> None:
                content = (found if isinstance(found, str) else json.dumps(found)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def finish(self, batch: str, *, broken: frozenset[str] = frozenset()) -> None:
        """Answer a batch, last request first; the ids of `broken` get an error."""
        held = self.batches[batch]
        requests = [json.loads(line) for line in self.files[held["input"]].splitlines()]
        good, bad = [], []
        for request in reversed(requests):
            body = request["body"]
            (item,) = (name for name, poem in POEMS.items() if f"主题：{poem[0]}" in body["messages"][0]["content"])
            reply = json.loads(completion(poem_text(item), {"prompt_tokens": 10, "completion_tokens": 5}))
            if item in broken:
                bad.append({"custom_id": request["custom_id"], "response": None, "error": {"message": "too busy"}})
            else:
                good.append({"custom_id": request["custom_id"], "response": {"status_code": 200, "body": reply}})
        self.files |= {f"{batch}-out": _lines(good), f"{batch}-err": _lines(bad)}
        held |= {"status": "completed", "output_file_id": f"{batch}-out" if good else None}
        held |= {"error_file_id": f"{batch}-err" if bad else None}

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def _lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def batches() -> Iterator[BatchServer]:
    running = BatchServer()
    yield running
    running.close()


@pytest.mark.slow
def test_a_batch_is_handed_in_once_and_collected_later(tmp_path: Path, batches: BatchServer) -> None:
    chosen = settings(tmp_path, batches.url, batch=True)
    with pytest.raises(BatchPendingError, match="3 requests were handed in as the batch batch-0"):
        LYRIC_WRITING.run(chosen)
    with pytest.raises(BatchPendingError, match="in_progress"):
        LYRIC_WRITING.run(chosen)
    assert [path for method, path in batches.seen if method == "POST"] == ["/v1/files", "/v1/batches"]
    batches.finish("batch-0", broken=frozenset({"moon"}))
    outcome = LYRIC_WRITING.run(chosen)
    totals = outcome.results["writing"]["totals"]["poet"]
    assert (totals["n_texts"], totals["n_failed"]) == (2, 1)
    texts = [json.loads(line) for line in (tmp_path / "out" / "texts.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["id"]: row["text"] for row in texts} == {item: poem_text(item) for item in ("spring", "heron")}
    assert json.loads((tmp_path / "out" / BATCHES).read_text()) == {}
    # what failed is handed in again, alone
    with pytest.raises(BatchPendingError, match="1 requests"):
        LYRIC_WRITING.run(chosen)
    batches.finish("batch-1")
    assert LYRIC_WRITING.run(chosen).results["writing"]["totals"]["poet"]["n_texts"] == 3


def test_what_a_batch_answered_is_not_asked_again_without_batches(tmp_path: Path, batches: BatchServer) -> None:
    with pytest.raises(BatchPendingError):
        LYRIC_WRITING.run(settings(tmp_path, batches.url, batch=True))
    batches.finish("batch-0")
    LYRIC_WRITING.run(settings(tmp_path, batches.url, batch=True))
    n = len(batches.seen)
    LYRIC_WRITING.run(settings(tmp_path, batches.url))
    assert len(batches.seen) == n


def test_a_batch_that_could_cost_too_much_is_not_handed_in(tmp_path: Path, batches: BatchServer) -> None:
    with pytest.raises(CostCeilingError):
        LYRIC_WRITING.run(settings(tmp_path, batches.url, batch=True, max_cost=1e-4))
    assert batches.seen == []


def test_models_without_batches_and_damaged_files_are_named(tmp_path: Path, batches: BatchServer) -> None:
    from music_evals.models.lyric_writers import CallableWriter

    chosen = settings(tmp_path, batches.url, batch=True, writers=[CallableWriter(str, "echoing")])
    with pytest.raises(InvalidInputError, match="only endpoints"):
        LYRIC_WRITING.run(chosen)
    (tmp_path / "out" / BATCHES).write_text("[]")
    with pytest.raises(CorruptRecordsError, match="damaged"):
        LYRIC_WRITING.run(chosen)


def test_the_options_reach_the_writers(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    songs = write_songs(tmp_path / "songs.jsonl")
    found: list[Settings] = []
    run = LYRIC_WRITING.run
    monkeypatch.setattr(LYRIC_WRITING, "run", lambda one, **more: (found.append(one), run(one, **more))[1])
    arguments = [
        "write-lyrics", "--dataset", str(songs), "--rhyme", "char", "--resamples", "20", "--no-report", "--out",
        str(tmp_path / "out"), "--endpoint", server.url, "--endpoint-model", "poet", "--price-in", "2", "--price-out",
        "50", "--requests-per-minute", "6000", "--max-cost", "0.001", "--engine", "serial",
    ]  # fmt: skip
    assert cli.main(arguments) != 0
    assert "ceiling" in capsys.readouterr().err
    assert (found[0].requests_per_minute, found[0].max_cost, found[0].batch) == (6000.0, 0.001, False)
    assert server.requests == []
