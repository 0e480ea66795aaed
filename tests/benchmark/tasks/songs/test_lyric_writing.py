from __future__ import annotations

import dataclasses
import json
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.benchmark.record_files import cut
from tests.writing import POEMS, build_model, poem_text, write_songs

from music_evals.benchmark import run
from music_evals.benchmark.records import RecordStore, read_records
from music_evals.benchmark.tasks.songs import generations, lyric_writing, writing_log
from music_evals.benchmark.tasks.songs.generations import WritingSystem, ask
from music_evals.benchmark.tasks.songs.lyric_writing import LYRIC_WRITING, Settings
from music_evals.benchmark.tasks.songs.lyrics import LYRICS
from music_evals.benchmark.tasks.songs.lyrics import Settings as Scoring
from music_evals.benchmark.tasks.songs.text_controls import LYRIC_CONTROLS
from music_evals.benchmark.tasks.songs.writing_log import Prices
from music_evals.csv_files import csv_text
from music_evals.errors import (
    BackendError,
    CorruptRecordsError,
    InvalidInputError,
    InvalidLyricsError,
    ModelUnavailableError,
    NoDataError,
    UnknownNameError,
    UnreadableFileError,
)
from music_evals.protocols import Written

VERSIONS = {"music_evals": "test"}


class FakeWriter:
    """Answers with prompt and seed, and keeps what it was asked; `trouble` may raise."""

    def __init__(
        self,
        name: str = "fake",
        *,
        deterministic: bool = False,
        batch_size: int = 1,
        concurrency: int = 1,
        trouble: Callable[[str], None] = lambda _: None,
        version: int = 1,
    ) -> None:
        self.name, self.deterministic = name, deterministic
        self.batch_size, self.concurrency = batch_size, concurrency
        self.trouble, self.version = trouble, version
        self.asked: list[tuple[int, str]] = []
        self.calls: list[int] = []
        self.closed = 0
        self.cut_off: bool | None = None

    def write(self, prompts: Sequence[str], *, seed: int) -> list[Written]:
        self.calls.append(len(prompts))
        for prompt in prompts:
            self.trouble(prompt)
        self.asked += [(seed, prompt) for prompt in prompts]
        return [Written(f"{prompt} {seed}", len(prompt), 10, self.cut_off) for prompt in prompts]

    def describe(self) -> Mapping[str, Any]:
        return {"kind": "fake", "version": self.version}

    def close(self) -> None:
        self.closed += 1


def asking(folder: Path, writers: Sequence[Any], prompts: Mapping[str, str], n_seeds: int = 1) -> list[dict[str, Any]]:
    systems = [WritingSystem(it.name, it, tuple(range(1 if it.deterministic else n_seeds))) for it in writers]
    with RecordStore(folder / "writing", {"task": "test"}) as records:
        return ask(systems, prompts, records, versions=VERSIONS)


def latest_generations(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, int, str], Mapping[str, Any]]:
    latest = generations.latest_rows([dict(row) for row in rows])
    return {(row["system"], row["seed"], row["item"]): row for row in latest.values()}


PROMPTS = {f"s{number}": f"prompt {number}" for number in range(5)}


# ---- asking


@pytest.mark.parametrize(("batch_size", "concurrency"), [(1, 1), (3, 1), (1, 4)])
def test_every_prompt_is_asked_once_for_each_seed(tmp_path: Path, batch_size: int, concurrency: int) -> None:
    writer = FakeWriter(batch_size=batch_size, concurrency=concurrency)
    found = latest_generations(asking(tmp_path, [writer], PROMPTS, n_seeds=2))
    assert sorted(writer.asked) == sorted((seed, prompt) for seed in (0, 1) for prompt in PROMPTS.values())
    assert {key: row["text"] for key, row in found.items()} == {
        ("fake", seed, item): f"{prompt} {seed}" for seed in (0, 1) for item, prompt in PROMPTS.items()
    }
    row = found["fake", 1, "s3"]
    assert (row["prompt_tokens"], row["completion_tokens"], row["prompt"]) == (8, 10, "prompt 3")
    assert row["seconds"] >= 0
    assert writer.closed == 1
    if batch_size == 3:
        assert writer.calls == [3, 2, 3, 2]  # a batch holds one seed


def test_a_deterministic_writer_is_asked_with_one_seed(tmp_path: Path) -> None:
    writer = FakeWriter(deterministic=True)
    asking(tmp_path, [writer], PROMPTS, n_seeds=3)
    assert [seed for seed, _ in writer.asked] == [0] * 5


class Killed(BaseException):
    """What nobody catches."""


@pytest.mark.parametrize("concurrency", [1, 2])
def test_an_interrupted_run_goes_on_and_asks_nothing_twice(tmp_path: Path, concurrency: int) -> None:
    def kill(prompt: str) -> None:
        if prompt == "prompt 3":
            raise Killed

    first = FakeWriter(concurrency=concurrency, trouble=kill)
    with pytest.raises(Killed):
        asking(tmp_path, [first], PROMPTS)
    second = FakeWriter(concurrency=concurrency)
    found = latest_generations(asking(tmp_path, [second], PROMPTS))
    assert sorted(first.asked + second.asked) == [(0, prompt) for prompt in PROMPTS.values()]
    assert len(found) == 5
    third = FakeWriter(concurrency=concurrency)
    assert latest_generations(asking(tmp_path, [third], PROMPTS)) == found
    assert third.asked == []
    assert third.closed == 1


class Hosted(FakeWriter):
    """Asked in threads; Ctrl-C comes while the second prompt is being answered."""

    def __init__(self, **options: Any) -> None:
        super().__init__(trouble=self._interrupt, **options)
        self.cancelled, self.was_told = threading.Event(), False

    def _interrupt(self, prompt: str) -> None:
        if prompt == "prompt 1":
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            self.was_told = self.cancelled.wait(30)

    def cancel(self) -> None:
        self.cancelled.set()


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Let SIGINT interrupt as in a terminal: processes that a shell starts in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("concurrency", [1, 2])
def test_ctrl_c_keeps_the_answers_that_are_under_way(tmp_path: Path, concurrency: int) -> None:
    first = Hosted(concurrency=concurrency)
    with pytest.raises(KeyboardInterrupt):
        asking(tmp_path, [first], PROMPTS)
    assert first.was_told, "what waits to try again is told to stop"
    assert first.closed == 1
    paid = {prompt for _, prompt in first.asked}
    assert "prompt 1" in paid
    kept = latest_generations(read_records(tmp_path / "writing"))
    assert {row["prompt"] for row in kept.values()} == paid
    if concurrency == 1:
        assert paid == {"prompt 0", "prompt 1"}  # what waited is not asked any more
    second = FakeWriter()
    assert len(latest_generations(asking(tmp_path, [second], PROMPTS))) == 5
    assert {prompt for _, prompt in second.asked} == set(PROMPTS.values()) - paid


def test_ctrl_c_between_answers_keeps_them_too(tmp_path: Path) -> None:
    writer = FakeWriter(concurrency=2)
    system = WritingSystem("fake", writer, (0,))

    def stop(done: int, _total: int, _label: str) -> None:
        if done == 2:
            raise KeyboardInterrupt

    path = tmp_path / "writing"
    with RecordStore(path, {"task": "test"}) as records, pytest.raises(KeyboardInterrupt):
        ask([system], PROMPTS, records, versions=VERSIONS, progress=stop)
    kept = latest_generations(read_records(path))
    assert {row["prompt"] for row in kept.values()} == {prompt for _, prompt in writer.asked}


def test_a_kill_costs_what_was_being_written(tmp_path: Path) -> None:
    asking(tmp_path, [FakeWriter()], PROMPTS)
    path = tmp_path / "writing"
    rows = read_records(path)
    cut(path, max(number for number, row in enumerate(rows) if row["kind"] == "generation"))
    writer = FakeWriter()
    assert len(latest_generations(asking(tmp_path, [writer], PROMPTS))) == 5
    assert writer.asked == [(0, "prompt 4")]


def test_a_failed_answer_is_recorded_and_asked_again(tmp_path: Path) -> None:
    def fail(prompt: str) -> None:
        if prompt == "prompt 1":
            msg = "status 500"
            raise BackendError(msg)

    rows = asking(tmp_path, [FakeWriter(trouble=fail)], PROMPTS)
    failed = latest_generations(rows)["fake", 0, "s1"]
    assert failed["error"] == "BackendError: status 500"
    assert "text" not in failed
    again = FakeWriter()
    assert latest_generations(asking(tmp_path, [again], PROMPTS))["fake", 0, "s1"]["text"] == "prompt 1 0"
    assert again.asked == [(0, "prompt 1")]


def test_one_failure_of_a_batch_fails_no_other(tmp_path: Path) -> None:
    def fail(prompt: str) -> None:
        if prompt == "prompt 1":
            msg = "too long"
            raise InvalidInputError(msg)

    found = latest_generations(asking(tmp_path, [FakeWriter(batch_size=4, trouble=fail)], PROMPTS))
    assert [key[2] for key, row in found.items() if "error" in row] == ["s1"]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_model_that_goes_away_stops_the_run_and_keeps_the_answers(tmp_path: Path, concurrency: int) -> None:
    barrier = threading.Barrier(concurrency, timeout=5)

    def gone(prompt: str) -> None:
        if prompt in {"prompt 0", "prompt 1", "prompt 2"} and concurrency > 1:
            barrier.wait()
        if prompt == "prompt 2":
            msg = "it is gone"
            raise ModelUnavailableError(msg)

    writer = FakeWriter(concurrency=concurrency, trouble=gone)
    with pytest.raises(ModelUnavailableError, match="it is gone"):
        asking(tmp_path, [writer], PROMPTS)
    kept = {key[2] for key in latest_generations(read_records(tmp_path / "writing"))}
    assert {"s0", "s1"} <= kept
    assert "s2" not in kept


def test_other_settings_prompts_and_names_are_asked_anew(tmp_path: Path) -> None:
    asking(tmp_path, [FakeWriter()], PROMPTS)
    for writer, prompts in (
        (FakeWriter(version=2), PROMPTS),
        (FakeWriter("other"), PROMPTS),
        (FakeWriter(), {item: f"{prompt}!" for item, prompt in PROMPTS.items()}),
    ):
        asking(tmp_path, [writer], prompts)
        assert len(writer.asked) == 5
    more = FakeWriter()
    asking(tmp_path, [more, FakeWriter("third")], {**PROMPTS, "s9": "prompt 9"}, n_seeds=2)
    assert sorted(more.asked) == sorted([(0, "prompt 9"), *((1, it) for it in (*PROMPTS.values(), "prompt 9"))])


def test_answers_that_no_file_can_hold_and_too_few_of_them(tmp_path: Path) -> None:
    class Odd(FakeWriter):
        def write(self, prompts: Sequence[str], *, seed: int) -> list[Written]:  # noqa: ARG002
            return [Written("\ud800")] if prompts[0] == "prompt 0" else []

    errors = [row["error"] for row in latest_generations(asking(tmp_path, [Odd()], PROMPTS)).values()]
    assert "half a character" in errors[0]
    assert "1 prompts were answered by 0 texts" in errors[1]


def test_progress_counts_what_is_there(tmp_path: Path) -> None:
    asking(tmp_path, [FakeWriter()], dict(list(PROMPTS.items())[:2]))
    told: list[tuple[int, int, str]] = []
    systems = [WritingSystem("fake", FakeWriter(), (0,)), WritingSystem("two", FakeWriter("two"), (0,))]
    with RecordStore(tmp_path / "writing", {"task": "test"}) as records:
        ask(systems, PROMPTS, records, versions=VERSIONS, progress=lambda *now: told.append(now))
    assert told[0] == (2, 10, "fake")
    assert told[-1] == (10, 10, "two")


# ---- time and cost


def test_cost_by_hand() -> None:
    assert Prices(0.5, 1.5).cost(2_000_000, 1_000_000) == 2.5
    assert Prices(3, 15).cost(1200, 400) == pytest.approx(0.0096)  # 0.0036 read, 0.0060 written
    assert Prices(0, 0).cost(1200, 400) == 0
    assert Prices(3, 15).cost(None, 400) is None
    assert Prices().cost(1200, 400) is None


@pytest.mark.parametrize(
    ("prices", "message"),
    [(Prices(1, None), "go together"), (Prices(-1, 1), "at least 0"), (Prices(1, float("nan")), "at least 0")],
)
def test_prices_that_are_none(prices: Prices, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        prices.check()


def test_sums_of_time_tokens_and_cost() -> None:
    def row(
        item: str, seconds: float, read: int | None, written: int | None, error: str | None = None
    ) -> dict[str, Any]:
        what = {"error": error} if error else {"prompt_tokens": read, "completion_tokens": written}
        if written is not None:
            what["cut_off"] = written == 50
        return {"system": "a", "seed": 0, "item": item, "seconds": seconds, **what}

    failed_first = row("s1", 5.0, None, None, "BackendError: busy")
    latest = [
        row("s0", 1.0, 100, 50),
        row("s1", 2.0, 200, 20),
        row("s2", 4.0, None, None),
        row("s3", 8.0, 0, 0, "E: x"),
    ]
    log = writing_log.log_rows(latest, {"a": Prices(10, 100)})
    assert [line["cost"] for line in log] == [0.006, 0.004, None, None]
    assert [line["cut_off"] for line in log] == [True, False, None, False]
    found = writing_log.totals(log, [failed_first, *latest])
    assert found == {
        "a": {
            "n_texts": 3, "n_failed": 1, "n_cut_off": 1, "seconds": 20.0, "prompt_tokens": 300,
            "completion_tokens": 70, "n_with_tokens": 2, "cost": pytest.approx(0.01), "n_with_cost": 2,
        }
    }  # fmt: skip
    assert csv_text(writing_log.COLUMNS, log).splitlines()[:3] == [
        "system,seed,item,seconds,prompt_tokens,completion_tokens,cost,cut_off,error",
        "a,0,s0,1.0,100,50,0.006,True,",
        "a,0,s1,2.0,200,20,0.004,False,",
    ]
    for shown in (writing_log.text_section(found), writing_log.markdown_section(found)):
        assert "300 (of 2)" in shown
        assert "0.0100 (of 2)" in shown
    assert "<td>20.0</td>" in writing_log.html_section(found).html


def test_nothing_known_is_not_zero() -> None:
    log = writing_log.log_rows(
        [{"system": "<b>", "seed": 0, "item": "s", "seconds": 1.0, "text": "x"}], {"<b>": Prices()}
    )
    found = writing_log.totals(log, [{"system": "<b>", "seconds": 1.0}])
    assert found["<b>"]["cost"] is None
    assert found["<b>"]["prompt_tokens"] is None
    assert "n/a" in writing_log.text_section(found)
    assert "&lt;b&gt;" in writing_log.html_section(found).html


# ---- from end to end


class Poet(FakeWriter):
    """Knows the poems by their themes, and writes as chat models do."""

    def write(self, prompts: Sequence[str], *, seed: int) -> list[Written]:
        super().write(prompts, seed=seed)
        found = [next(item for item, poem in POEMS.items() if poem[0] in prompt) for prompt in prompts]
        return [Written(f"好的，这是歌词：\n```\n{poem_text(item)}\n```", 200, 40, self.cut_off) for item in found]


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., Settings]:
    """Return a function that makes settings of a small run over poems."""
    songs = write_songs(tmp_path / "songs.jsonl")

    def make(**options: Any) -> Settings:
        common = {"out": tmp_path / "out", "dataset": str(songs), "rhyme": "char", "n_resamples": 20}
        return Settings(**{**common, "report": False, **options})

    return make


def value(results: Mapping[str, Any], system: str, score: str = "lyric_structure") -> float:
    found: float = results["scores"][system][score]["value"]
    return found


@pytest.mark.slow
def test_without_a_writer_the_reference_rows_are_scored(settings: Callable[..., Settings], tmp_path: Path) -> None:
    results = LYRIC_WRITING.run(settings()).results
    assert tuple(results["systems"]) == LYRIC_CONTROLS
    assert value(results, "true lyrics") > value(results, "another song")
    assert value(results, "true lyrics") > value(results, "shuffled structure")
    assert "writing" not in results
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"records", "results.json", "table.md"}


def test_texts_are_written_scored_and_logged(settings: Callable[..., Settings], tmp_path: Path) -> None:
    poet, other = Poet("poet", deterministic=True), FakeWriter("babbler")
    outcome = LYRIC_WRITING.run(settings(writers=[poet, other], n_seeds=2, report=True))
    results, out = outcome.results, tmp_path / "out"
    assert results["systems"]["poet"]["n_pairs"] == 3
    assert results["systems"]["babbler"]["n_pairs"] == 6
    assert value(results, "poet") == pytest.approx(value(results, "true lyrics"))  # what it wrote around is taken off
    assert value(results, "babbler") < 20
    writing = results["writing"]
    assert writing["totals"]["poet"]["completion_tokens"] == 120
    assert writing["totals"]["babbler"]["n_texts"] == 6
    assert writing["prompt"]["language"] == "zh"
    assert writing["writers"]["poet"] == {"system": "poet", "kind": "fake", "version": 1}
    assert writing["wall_time_sec"] > 0
    assert json.loads((out / "results.json").read_text())["writing"] == writing
    assert "### What it took" in (out / "table.md").read_text()
    page = (out / "report.html").read_text()
    assert "<h2>What it took</h2>" in page
    assert "Where points were lost" in page
    assert "What it took" in lyric_writing.text_report(results)
    assert results["numbered"] is False
    assert "section headers without numbers" in (out / "table.md").read_text()
    assert len((out / "writing_log.csv").read_text().splitlines()) == 1 + 3 + 6
    assert set(outcome.files) == {"records", "results", "table", "report", "texts", "log", "generations"}


def test_results_are_written_once(settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    real = run.write_atomically

    def counting(path: Path, content: bytes) -> None:
        written.append(path.name)
        real(path, content)

    monkeypatch.setattr(run, "write_atomically", counting)
    LYRIC_WRITING.run(settings(writers=[Poet("poet")], report=True))
    assert sorted(written) == ["report.html", "results.json", "table.md", "texts.jsonl", "writing_log.csv"]


def test_what_is_scored_is_what_was_asked_for(settings: Callable[..., Settings]) -> None:
    """Fields of one name in both settings are the same, but for the prompt's patterns, which have no numbers."""
    given = {
        "config": "demo", "split": "dev", "revision": "x", "limit": 3, "variant": "paper", "rhyme": "line",
        "normalise": False, "strict": True, "confidence": 0.9, "n_resamples": 7, "seed": 5, "controls": False,
        "overwrite": True, "report": True, "theme_encoder": "char-ngrams", "theme_encoder_revision": "y",
    }  # fmt: skip
    scoring = settings(**given).scoring
    assert {name: getattr(scoring, name) for name in given} == given
    shared = {field.name for field in dataclasses.fields(Settings)} & {
        field.name for field in dataclasses.fields(Scoring)
    }
    assert shared == {*given, "out", "dataset", "engine", "workers", "ray_address", "predictions"}
    assert scoring.numbered is False


def test_texts_without_a_header_can_be_made_failures(settings: Callable[..., Settings]) -> None:
    class Formless(FakeWriter):
        def write(self, prompts: Sequence[str], *, seed: int) -> list[Written]:
            super().write(prompts, seed=seed)
            return [Written("床前明月光")] * len(prompts)

    loose = LYRIC_WRITING.run(settings(writers=[Formless("formless")]))
    told = [note for note in loose.notes if note.startswith("formless: 3 texts scored 0: no section header was found")]
    strict = LYRIC_WRITING.run(settings(writers=[Formless("formless")], strict=True, overwrite=True)).results
    assert (len(told), len(strict["failures"])) == (1, 3)


@pytest.mark.slow
def test_the_texts_can_be_scored_again(settings: Callable[..., Settings], tmp_path: Path) -> None:
    results = LYRIC_WRITING.run(settings(writers=[Poet("poet"), FakeWriter("babbler")], n_seeds=2)).results
    texts = str(tmp_path / "out" / "texts.jsonl")
    scoring = Scoring(
        out=tmp_path / "again", dataset=str(tmp_path / "songs.jsonl"), predictions=[texts], rhyme="char",
        n_resamples=20, report=False, numbered=False,
    )  # fmt: skip
    assert LYRICS.run(scoring).results["scores"] == results["scores"]


def test_a_second_run_asks_nothing_and_gives_the_same(settings: Callable[..., Settings]) -> None:
    first = LYRIC_WRITING.run(settings(writers=[Poet("poet")]))
    poet = Poet("poet")
    second = LYRIC_WRITING.run(settings(writers=[poet]))
    assert poet.asked == []
    assert second.results["scores"] == first.results["scores"]
    assert second.results["writing"]["totals"] == first.results["writing"]["totals"]
    fresh = Poet("poet")
    LYRIC_WRITING.run(settings(writers=[fresh], overwrite=True))
    assert len(fresh.asked) == 3


def test_writers_may_be_added_later(settings: Callable[..., Settings]) -> None:
    LYRIC_WRITING.run(settings(writers=[Poet("poet")]))
    poet, late = Poet("poet"), Poet("late")
    results = LYRIC_WRITING.run(settings(writers=[poet, late])).results
    assert (len(poet.asked), len(late.asked)) == (0, 3)
    assert value(results, "poet") == value(results, "late")


def test_failed_answers_and_songs_without_a_theme(settings: Callable[..., Settings], tmp_path: Path) -> None:
    def fail(prompt: str) -> None:
        if POEMS["moon"][0] in prompt:
            msg = "status 500"
            raise BackendError(msg)

    rows = [json.loads(line) for line in (tmp_path / "songs.jsonl").read_text().splitlines()]
    for group in ("professional", "amateur"):
        rows[2][group]["dimensions"]["lyric_themes"]["text"] = None
    (tmp_path / "songs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    results = LYRIC_WRITING.run(settings(writers=[Poet("poet", trouble=fail)])).results
    failures = {row["item"]: row["error"] for row in results["failures"]}
    assert failures["moon"] == "BackendError: status 500"
    assert failures["heron"].startswith("InvalidLyricsError: the theme of a lyric must be a text that is not empty")
    assert results["scores"]["poet"]["lyric_structure"]["n_defined"] == 1
    assert results["writing"]["totals"]["poet"]["n_failed"] == 1
    healed = Poet("poet")
    results = LYRIC_WRITING.run(settings(writers=[healed])).results
    assert len(healed.asked) == 1
    assert [row["item"] for row in results["failures"]] == ["heron"]


def test_theme_language_and_example_reach_the_prompt(settings: Callable[..., Settings], tmp_path: Path) -> None:
    example = tmp_path / "example.json"
    example.write_text(json.dumps({"theme": "Rain.", "structure": "(verse)\nccR", "lyrics": "(verse)\n下雨天"}))
    poet = Poet("poet")
    results = LYRIC_WRITING.run(settings(writers=[poet], language="en", theme_from="amateur", example=example)).results
    prompt = poet.asked[0][1]
    assert prompt.startswith("You are")
    assert "Theme: 春天的早晨！\n" in prompt
    assert "下雨天" in prompt
    assert "(verse)\nccccR\nccccR\n(chorus)\nccccc\nccccc\n" in prompt
    receipt = results["writing"]["prompt"]
    assert (receipt["language"], receipt["example"], receipt["theme_from"]) == ("en", "given", "amateur")
    with pytest.raises(CorruptRecordsError, match=r"prompt.language was 'en' and is now 'zh'"):
        LYRIC_WRITING.run(settings(writers=[poet]))


def test_texts_that_were_cut_off_are_noted(settings: Callable[..., Settings]) -> None:
    poet = Poet("poet")
    poet.cut_off = True
    outcome = LYRIC_WRITING.run(settings(writers=[poet]))
    assert outcome.results["writing"]["totals"]["poet"]["n_cut_off"] == 3
    note = "poet: 3 texts cut off at the limit of tokens; raise `max_tokens`"
    assert note in outcome.notes
    assert note in lyric_writing.text_report(outcome.results)


@pytest.mark.slow
def test_a_model_of_transformers_writes(settings: Callable[..., Settings], tmp_path: Path) -> None:
    folder = build_model(tmp_path / "tiny-chat", room=4096, do_sample=True, temperature=0.9)
    options = {"models": [f"tiny={folder}"], "n_seeds": 2, "max_tokens": 8, "limit": 2}
    outcome = LYRIC_WRITING.run(settings(**options))
    assert outcome.results["systems"]["tiny"]["n_pairs"] == 4
    about = outcome.results["writing"]["writers"]["tiny"]
    assert about["sampling"] == {"temperature": 0.9}
    assert about["max_new_tokens"] == 8
    texts = (tmp_path / "out" / "texts.jsonl").read_text()
    assert len(set(texts.splitlines())) == 4
    LYRIC_WRITING.run(settings(**options, overwrite=True))
    assert (tmp_path / "out" / "texts.jsonl").read_text() == texts  # seeded


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_seeds": 0}, InvalidInputError, "`n_seeds` must be at least 1"),
        ({"limit": 0}, InvalidInputError, "`limit` must be at least 1"),
        ({"confidence": 2}, InvalidInputError, "`confidence` must lie"),
        ({"language": "de"}, UnknownNameError, "unknown language of prompts"),
        ({"theme_from": "amateurs"}, UnknownNameError, "did you mean amateur"),
        ({"dataset": "nowhere.jsonl"}, NoDataError, "no such file"),
        ({"variant": "papre"}, UnknownNameError, "did you mean paper"),
        ({"rhyme": "chars"}, UnknownNameError, "did you mean char"),
        ({"models": ["=x"]}, InvalidInputError, "`models` takes ID"),
        ({"models": ["x@"]}, InvalidInputError, "`models` takes ID"),
        ({"models": ["nobody/no-model@v1"]}, ModelUnavailableError, "nobody/no-model"),
        ({"writers": [FakeWriter(), FakeWriter()]}, InvalidInputError, "different names"),
        ({"writers": [FakeWriter("true lyrics")]}, InvalidInputError, "different names"),
        ({"example": "nowhere.json"}, NoDataError, "no such file"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_asked(
    settings: Callable[..., Settings], tmp_path: Path, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    writers = options.pop("writers", [FakeWriter()])
    with pytest.raises(error, match=message):
        LYRIC_WRITING.run(settings(writers=writers, **options))
    assert all(writer.asked == [] for writer in writers)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", UnreadableFileError),
        ("[]", InvalidInputError),
        ('{"theme": "a", "structure": "(verse)\\nc"}', InvalidInputError),
        ('{"theme": " ", "structure": "(verse)\\nc", "lyrics": "(verse)\\n词"}', InvalidLyricsError),
    ],
)
def test_examples_that_are_none(
    settings: Callable[..., Settings], tmp_path: Path, text: str, error: type[Exception]
) -> None:
    (tmp_path / "example.json").write_text(text)
    with pytest.raises(error, match="example"):
        LYRIC_WRITING.run(settings(example=tmp_path / "example.json"))
