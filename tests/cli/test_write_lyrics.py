from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.writing import POEMS, Server, build_model, completion, poem_text, write_songs

from music_evals import cli
from music_evals.benchmark.records import read_records
from music_evals.protocols import Written

KEY = "sk-secret-4711"
LYRIC = completion(poem_text("spring"), {"prompt_tokens": 1000, "completion_tokens": 40})


@pytest.fixture
def reference(tmp_path: Path) -> list[str]:
    """Arguments of a small run without a model."""
    songs = write_songs(tmp_path / "songs.jsonl")
    return [
        "write-lyrics", "--dataset", str(songs), "--rhyme", "char", "--resamples", "20", "--no-report",
        "--out", str(tmp_path / "out"),
    ]  # fmt: skip


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for variable in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("SECRET_OF_A_TEST", KEY)
    running = Server()
    yield running
    running.close()


@pytest.fixture
def hosted(reference: list[str], server: Server) -> list[str]:
    """Arguments of a small run with an endpoint."""
    return [
        *reference, "--endpoint", server.url, "--endpoint-model", "lab/poet-1", "--api-key-env", "SECRET_OF_A_TEST",
        "--price-in", "2", "--price-out", "50", "--retries", "0", "--concurrency", "2",
    ]  # fmt: skip


class Recorder:
    """Stands in for a writer of the registry, and keeps how it was made."""

    made: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})
    deterministic = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        type(self).made = arguments, options
        self.name = options.get("name") or "recorder"

    def write(self, prompts: list[str], *, seed: int) -> list[Written]:
        return [Written(f"(verse)\n第{seed}首") for _ in prompts]

    def describe(self) -> dict[str, Any]:
        return {"kind": "recorder"}


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> type[Recorder]:
    from music_evals.benchmark.tasks.songs import lyric_writing

    monkeypatch.setattr(lyric_writing, "load_plugin", lambda *_: Recorder)
    return Recorder


def everything(folder: Path) -> str:
    """All that a run wrote, its compressed records as JSON."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".parquet"]
    records = {path.parent for path in folder.rglob("*.parquet")}
    texts = [path.read_text(encoding="utf-8") for path in files]
    return "\n".join([*texts, *(json.dumps(list(read_records(path)), ensure_ascii=False) for path in records)])


def test_without_a_model_the_reference_rows_are_told(
    reference: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*reference, "--published"]) == 0
    out, _ = capsys.readouterr()
    for word in (
        "(true lyrics)",
        "(another song)",
        "(shuffled structure)",
        "(echo)",
        "(one character)",
        "GPT-4",
        "67.080",
    ):
        assert word in out
    assert f"{tmp_path / 'out'}: records, results.json, table.md" in out
    assert "What it took" not in out


@pytest.mark.slow
def test_the_demo_songs_run_offline(in_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["write-lyrics", "--dataset", "caimd", "--config", "demo", "--rhyme", "char", "--resamples", "20"]
    assert cli.main([*arguments, "--out", str(tmp_path / "out"), "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert results["dataset"]["config"] == "demo"
    assert results["scores"]["true lyrics"]["lyric_structure"]["value"] > 100
    assert (tmp_path / "out" / "report.html").is_file()


def test_an_endpoint_writes_and_its_key_is_nowhere(
    hosted: list[str], server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    caplog.set_level(logging.DEBUG)
    server.answers((200, LYRIC))
    assert cli.main(hosted) == 0
    out, err = capsys.readouterr()
    assert "poet-1" in out
    assert "What it took" in out
    assert "0.0120" in out  # 3 x (2 x 1000 + 50 x 40) / 1e6
    assert "lyric" in err  # the progress bar
    assert {request["key"] for request in server.requests} == {f"Bearer {KEY}"}
    for text in (out, err, caplog.text, everything(tmp_path / "out")):
        assert KEY not in text
    n_asked = len(server.requests)
    assert n_asked == 3
    assert cli.main([*hosted, "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert results["writing"]["totals"]["poet-1"]["cost"] == pytest.approx(0.012)
    assert len(server.requests) == n_asked  # nothing is asked twice


def test_failed_answers_are_listed_and_asked_again(
    hosted: list[str], server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answers((500, f"no luck with {KEY}"), (200, LYRIC))
    assert cli.main(hosted) == 1
    out, err = capsys.readouterr()
    assert "1 failed:" in err
    assert "(poet-1): BackendError: " in err
    assert "status 500: no luck with ***" in err
    assert "n 2/3, 1 failed" in out
    assert KEY not in out + err
    assert cli.main(hosted) == 0
    assert len(server.requests) == 4


def test_a_refused_key_ends_the_run(
    hosted: list[str], server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answers((401, f"bad key {KEY}"))
    assert cli.main(hosted) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "refused the key in $SECRET_OF_A_TEST" in err
    assert KEY not in err + everything(tmp_path / "out")


def test_options_reach_a_model_of_transformers(reference: list[str], recorder: type[Recorder]) -> None:
    options = [
        "--model", "mine=lab/poet@v1", "--batch-size", "2", "--device", "cpu", "--dtype", "bfloat16", "--seeds", "2",
        "--temperature", "0.5", "--top-p", "0.9", "--max-tokens", "100", "--template-option", "enable_thinking=false",
        "--trust-remote-code", "--language", "en",
    ]  # fmt: skip
    assert cli.main([*reference, *options]) == 0
    assert recorder.made == (
        ("lab/poet",),
        {
            "name": "mine", "revision": "v1", "batch_size": 2, "device": "cpu", "dtype": "bfloat16", "temperature": 0.5,
            "top_p": 0.9, "max_new_tokens": 100, "template_options": {"enable_thinking": False},
            "trust_remote_code": True,
        },
    )  # fmt: skip


def test_options_reach_each_endpoint(
    reference: list[str], recorder: type[Recorder], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [
        "--endpoint", "one=http://one/v1", "--endpoint", "http://two/v1", "--endpoint-model", "m1", "--endpoint-model",
        "m2", "--api-key-env", "", "--api-key-env", "KEY_2", "--price-in", "1", "--price-out", "2", "--price-out", "3",
        "--endpoint-option", "top_k=5", "--timeout", "7", "--allow-http", "--json",
    ]  # fmt: skip
    assert cli.main([*reference, *options]) == 0
    assert recorder.made == (
        ("http://two/v1", "m2"),
        {"name": None, "api_key_env": "KEY_2", "options": {"top_k": 5}, "timeout_sec": 7.0, "allow_http": True},
    )
    writing = json.loads(capsys.readouterr().out)["writing"]
    assert writing["prices"] == {"one": {"read": 1, "written": 2}, "recorder": {"read": 1, "written": 3}}
    assert len((tmp_path / "out" / "texts.jsonl").read_text().splitlines()) == 2 * len(POEMS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--language", "fr"], "unknown language of prompts 'fr'"),
        (["--theme-from", "x"], "unknown group of annotators"),
        (["--seeds", "0"], "--seeds must be at least 1"),
        (["--variant", "papre"], "did you mean paper"),
        (["--model", "nobody/no-such-model"], "hf download nobody/no-such-model"),
        (["--model", "./nowhere"], "cannot be loaded"),
        (["--endpoint", "http://host"], "--endpoint needs --endpoint-model"),
        (["--endpoint-model", "m"], "--endpoint-model goes with --endpoint"),
        (["--endpoint", "ftp://host", "--endpoint-model", "m"], "must be an http or https address"),
        (["--endpoint", "http://host", "--endpoint-model", "m", "--endpoint-model", "n"], "given 2 times for 1"),
        (
            ["--endpoint", "http://h", "--endpoint-model", "m", "--api-key-env", "NO_SUCH_KEY"],
            "NO_SUCH_KEY holds no key",
        ),
        (["--endpoint", "http://h", "--endpoint-model", "m", "--price-in", "1"], "go together"),
        (
            ["--endpoint", "http://h", "--endpoint-model", "m", "--endpoint-option", "stream=true"],
            "stream cannot be an option",
        ),
        (["--endpoint-option", "top_k"], "--endpoint-option takes KEY=JSON"),
        (["--template-option", "=1"], "--template-option takes KEY=JSON"),
        (["--limit", "0"], "--limit must be at least 1"),
    ],
)
def test_wrong_options_are_usage_errors(
    reference: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], change: list[str], message: str
) -> None:
    assert cli.main([*reference, *change]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("music-evals: error: ")
    assert message in err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_tuned_writer_is_judged_beside_its_base(
    reference: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = build_model(tmp_path / "base", template=None, room=900)
    out = tmp_path / "writer"
    songs = str(tmp_path / "songs.jsonl")
    judged = tmp_path / "judged.jsonl"
    judged.write_text((tmp_path / "songs.jsonl").read_text(encoding="utf-8").splitlines()[0] + "\n", encoding="utf-8")
    settings = {
        "model.base": base, "model.tuning": "lora", "model.rank": 2, "data.dataset": songs, "data.judged": judged,
        "training.epochs": 1,
    }  # fmt: skip
    changes = [text for name, value in settings.items() for text in ("--set", f"{name}={value}")]
    assert cli.main(["train", "models/lyric_writer/train.yaml", *changes, "--out", str(out), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["left_out"] == {"judged or a near copy": 1}
    assert result["judged_loss"]["n"] == 1
    assert result["judged_loss"]["difference"] == pytest.approx(
        result["judged_loss"]["tuned"] - result["judged_loss"]["base"]
    )
    models = ["--model", f"base={base}", "--model", f"tuned={out / 'model'}", "--max-tokens", "4", "--json"]
    assert cli.main([*reference, *models]) in {0, 1}
    results = json.loads(capsys.readouterr().out)
    assert {"base", "tuned"} <= set(results["systems"])
    assert any({row["a"], row["b"]} == {"base", "tuned"} for row in results["comparisons"])
