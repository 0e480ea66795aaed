"""Themes by writers that stand in for language models: what is kept, what is refused, and what is not asked again."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.writing import Server, completion

from music_evals.cli import main
from music_evals.errors import BackendError
from music_evals.models.lyric_writers import CallableWriter
from music_evals.preparation.task import Settings, run_preparation
from music_evals.preparation.themes import LONGEST, checked_theme
from music_evals.protocols import Written

LYRICS = "(verse)\n船过小江听见钟声\n今夜无眠\n(chorus)\n灯火微光照着归路\n"
THEME = "我在夜里坐船回家，听着远处的钟声，心里想着等我的人。"


@pytest.fixture
def songs(tmp_path: Path) -> Path:
    folder = tmp_path / "songs"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.txt").write_text(LYRICS.replace("江", "江" if name == "a" else "河"), encoding="utf-8")
    return folder


class Answers:
    """Answers by the letter of the song, and counts how often it was asked."""

    def __init__(self, **answers: str) -> None:
        self.answers, self.prompts = answers, list[str]()

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return self.answers["a" if "江" in prompt else "b"]


def _run(songs: Path, answers: Answers, **details: str):
    writer = CallableWriter(answers, "stand-in", details={"model": "lab/stand-in", "commit": "0" * 40, **details})
    return run_preparation(Settings(songs.parent / "out", songs=songs, steps=["themes"], theme_writer=writer))


def test_a_theme_is_kept_with_its_model_and_not_asked_again(songs: Path) -> None:
    answers = Answers(a=f" {THEME}\n", b="")
    days = [dt.datetime.now(dt.UTC).date().isoformat()]
    done = _run(songs, answers)
    days.append(dt.datetime.now(dt.UTC).date().isoformat())
    first, second = done.rows
    assert first["theme"]["day"] in days
    assert first["theme"] == {
        "text": THEME, "model": "lab/stand-in", "state": "0" * 40, "day": first["theme"]["day"],
    }  # fmt: skip
    assert second["theme"] is None
    assert done.failures == [("b themes", "BackendError: stand-in wrote no theme: the answer is empty")]
    assert "船过小江听见钟声" in answers.prompts[0]
    assert "主题" in answers.prompts[0]  # the Chinese prompt
    later = Answers(a="别的", b=THEME)
    assert [row["theme"]["text"] for row in _run(songs, later).rows] == [THEME, THEME]
    assert len(later.prompts) == 1  # what was answered is not asked again, what was refused is
    other = Answers(a=THEME, b=THEME)
    _run(songs, other, commit="1" * 40)  # another state of the model
    assert len(other.prompts) == 2
    (songs / "a.txt").write_text(LYRICS.replace("江", "江边"), encoding="utf-8")
    _run(songs, other, commit="1" * 40)
    assert len(other.prompts) == 3


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("  \n", "is empty"),
        ("<think>我该怎么写", "is empty"),
        ("长" * (LONGEST + 1), f"more than {LONGEST}"),
        ("A song about going home by night.", "not Chinese"),
        (f"{THEME}船过小江，听见钟声。", "copies the line '船过小江听见钟声'"),
    ],
)
def test_what_is_no_theme_is_refused(answer: str, reason: str) -> None:
    with pytest.raises(BackendError, match=reason):
        checked_theme(answer, LYRICS, "writer")


def test_a_short_line_and_a_header_are_no_copies() -> None:
    assert checked_theme("长" * LONGEST, LYRICS, "writer")
    assert checked_theme(f"<think>船过小江听见钟声</think>\n{THEME}", LYRICS, "writer") == THEME
    assert checked_theme(f"今夜无眠，{THEME}", LYRICS, "writer")


def test_an_answer_that_was_cut_off_is_refused(songs: Path) -> None:
    class Cut(CallableWriter):
        def write(self, prompts, *, seed: int) -> list[Written]:  # noqa: ARG002 (as the protocol has it)
            return [Written(THEME, cut_off=True) for _ in prompts]

    done = run_preparation(
        Settings(songs.parent / "out", songs=songs, steps=["themes"], theme_writer=Cut(lambda _: "", "cut"))
    )
    assert ["cut off" in reason for _, reason in done.failures] == [True, True]


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


def test_an_endpoint_is_named_as_elsewhere(
    songs: Path, tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for variable in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("SECRET_OF_A_TEST", "sk-secret")
    server.answers((200, completion(THEME)))
    out = tmp_path / "out"
    command = ["prepare", str(songs), "--out", str(out), "--steps", "themes", "--json"]
    endpoint = ["--theme-endpoint", server.url, "--api-key-env", "SECRET_OF_A_TEST"]
    assert main([*command, "--theme-model", "lab/poet-1", *endpoint]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["theme"]["text"] for row in rows] == [THEME, THEME]
    assert rows[0]["theme"]["model"] == "lab/poet-1"
    assert len(server.requests) == 2
    assert server.requests[0]["key"] == "Bearer sk-secret"
    assert not any(b"sk-secret" in path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert main([*command, "--theme-model", "lab/poet-1", *endpoint]) == 0
    assert len(server.requests) == 2
    assert main([*command, *endpoint]) == 2
    assert main(command) == 2  # asked for by name, and nobody to ask
