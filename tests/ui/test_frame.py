"""The frame of all pages: errors in words, progress, receipts, downloads, and how a page is served."""

from __future__ import annotations

import csv
import inspect
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import numpy as np
import pytest

from music_evals.errors import (
    FileTooLargeError,
    InvalidInputError,
    MissingBackendError,
    ModelUnavailableError,
    MusicEvalsError,
    NoDataError,
    located,
)
from music_evals.ui import frame
from music_evals.ui.uploads import load_recording


class ShownError(RuntimeError):
    """As gr.Error, which Gradio shows on the page."""

    def __init__(self, message: str, *, print_exception: bool = True) -> None:
        super().__init__(message)
        self.print_exception = print_exception


@pytest.fixture
def stub_gradio(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradio without its import, which takes seconds."""
    stub = SimpleNamespace(Error=ShownError, Progress=lambda: "the bar")
    monkeypatch.setitem(sys.modules, "gradio", stub)


def refuse(text: str) -> str:
    """Say no."""
    raise InvalidInputError(text)


@pytest.mark.usefixtures("stub_gradio")
def test_a_named_error_is_shown_in_words_that_run_nowhere() -> None:
    with pytest.raises(ShownError, match=r"^got '&lt;img src=x onerror=alert\(1\)&gt;' &amp;amp;$"):
        frame.friendly(refuse)("got '<img src=x onerror=alert(1)>' &amp;")
    assert frame.friendly(len)("abc") == 3
    assert frame.friendly(refuse).__name__ == "refuse"


@pytest.mark.usefixtures("stub_gradio")
def test_a_bug_stays_a_bug() -> None:
    with pytest.raises(ZeroDivisionError):
        frame.friendly(lambda: 1 / 0)()


@pytest.mark.usefixtures("stub_gradio")
def test_visitors_know_their_files_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADIO_TEMP_DIR", "/somewhere/gradio")
    place = frame.temporary_folder()
    for folder in (place, Path("/somewhere/gradio/0123abcd")):
        with pytest.raises(ShownError, match=r"^my song\.wav: not a readable file$"):
            frame.friendly(refuse)(f"{folder}/my song.wav: not a readable file")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            FileTooLargeError("song.wav: more", name="song.wav", unit="seconds", limit=360, size=421.6),
            "song.wav is too long or too large (7 min 2 s): at most 6 min are taken here. Upload a shorter excerpt.",
        ),
        (
            FileTooLargeError("a.mid: more", name="a.mid", unit="bytes", limit=2**20),
            "a.mid is too long or too large: at most 1 MiB are taken here. Upload a shorter excerpt.",
        ),
        (
            FileTooLargeError("a: more", name="a", unit="notes", limit=500, size=6_000),
            "a is too long or too large (6,000 notes): at most 500 notes are taken here. Upload a shorter excerpt.",
        ),
        (
            MissingBackendError("essentia", "", "official chords", install="pip install essentia"),
            "official chords: not available on this page, since its server lacks the package essentia.",
        ),
        (
            ModelUnavailableError("no weights; run music-evals train models/x/train.yaml"),
            "The model cannot be loaded on this page now. Choose another one, or come back later.",
        ),
        (InvalidInputError("expected 4, got 5"), "expected 4, got 5"),
    ],
)
def test_visitors_are_told_facts_and_what_they_can_do_here(error: MusicEvalsError, said: str) -> None:
    assert frame.say_error(error) == said


def test_a_file_over_the_limit_is_told_without_the_names_of_our_code(tmp_path: Path) -> None:
    """Also through the process that reads uploads: facts travel with the error."""
    soundfile = pytest.importorskip("soundfile")
    path = tmp_path / "long.wav"
    soundfile.write(path, np.zeros(3 * 8000), 8000)
    with pytest.raises(FileTooLargeError) as refused:
        load_recording(path, max_seconds=2)
    assert (refused.value.limit, refused.value.size, refused.value.unit) == (2, 3, "seconds")
    said = frame.say_error(refused.value)
    assert said.startswith("long.wav is too long or too large (3 seconds): at most 2 seconds")
    assert "AudioLimits" not in said
    moved = located(refused.value, "pair 1")
    assert (str(moved), moved.limit) == (f"pair 1: {refused.value}", 2)


@pytest.mark.parametrize(
    ("space", "said", "spoken"),
    [(None, "stays on the machine", "只留在提供本页面的机器上"), ("a/b", "sent to the server", "本 Space 的服务器")],
)
def test_where_uploads_go_is_said_as_it_is(
    monkeypatch: pytest.MonkeyPatch, space: str | None, said: str, spoken: str
) -> None:
    monkeypatch.delenv("SPACE_ID", raising=False)
    if space is not None:
        monkeypatch.setenv("SPACE_ID", space)
    assert said in frame.privacy()
    assert frame.privacy().endswith(frame.REMOVAL)
    assert spoken in frame.privacy("zh")
    assert frame.privacy("zh").endswith("70 分钟内删除。")


@pytest.mark.usefixtures("stub_gradio")
def test_a_generator_stays_one() -> None:
    def steps(n: int) -> Iterator[int]:
        yield from range(n)
        raise NoDataError("no more")

    wrapped = frame.friendly(steps)
    assert inspect.isgeneratorfunction(wrapped)
    found = wrapped(2)
    assert [next(found), next(found)] == [0, 1]
    with pytest.raises(ShownError):
        next(found)


@pytest.mark.usefixtures("stub_gradio")
def test_progress_comes_last_and_under_the_names_of_the_function() -> None:
    told: list[Any] = []

    def work(first: str, second: int, progress: Any = None) -> str:
        told.append(progress)
        return first * second

    wrapped = frame.with_progress(work)
    assert list(inspect.signature(wrapped).parameters) == ["first", "second", "progress"]
    assert inspect.signature(wrapped).parameters["progress"].default == "the bar"
    assert wrapped("ab", 2, "bar") == "abab"
    assert told == ["bar"]
    assert frame.with_progress(refuse) is refuse


@pytest.mark.usefixtures("stub_gradio")
def test_progress_of_a_generator() -> None:
    def steps(n: int, *, progress: Any) -> Iterator[tuple[int, Any]]:
        for number in range(n):
            yield number, progress

    wrapped = frame.with_progress(steps)
    assert inspect.isgeneratorfunction(wrapped)
    assert list(wrapped(2, "bar")) == [(0, "bar"), (1, "bar")]


def test_a_receipt_is_escaped_at_any_depth() -> None:
    shown = frame.receipt_html({"<k>": {"file": '<script>"', "n": [1, 2.5, None], "none": []}, "v": 0.1 + 0.2})
    assert "<k>" not in shown
    assert "<script" not in shown
    assert "&lt;script&gt;&#34;" in shown
    assert "<dd>1, 2.5, none</dd>" in shown
    assert "<dd>0.3</dd>" in shown


def test_downloads_hold_what_was_found() -> None:
    results = {"score": np.float32(0.5), "undefined": float("nan"), "notes": np.array([1, 2]), "终": ("a", np.inf)}
    json_path, csv_path = frame.write_downloads(results, [{"a": 1, "b": float("nan")}, {"a": -2.5, "c": "终"}])
    held = json.loads(Path(json_path).read_text(encoding="utf-8"))
    assert held == {"score": 0.5, "undefined": None, "notes": [1, 2], "终": ["a", None]}
    with Path(csv_path).open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [["a", "b", "c"], ["1", "", ""], ["-2.5", "", "终"]]
    assert Path(json_path).name == "results.json"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_spreadsheet_computes_a_cell(start: str) -> None:
    name = f'{start}HYPERLINK("http://x","y")'
    _, csv_path = frame.write_downloads({}, [{name: name, "file": 'a",b\n.wav'}])
    with Path(csv_path).open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [[f"'{name}", "file"], [f"'{name}", 'a",b\n.wav']]


def test_downloads_go_after_an_hour_whether_or_not_visitors_come(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    old, new = folder / "old", folder / "new"
    for path in (old, new):
        path.mkdir(parents=True)
    (old / "results.json").write_text("{}")
    long_ago = time.time() - frame.RETENTION_SEC - 1
    os.utime(old, (long_ago, long_ago))
    sweeper = threading.Thread(target=frame._keep_sweeping, args=(folder, 0.01), daemon=True)
    sweeper.start()
    for _ in range(500):
        if not old.exists():
            break
        time.sleep(0.01)
    assert not old.exists()
    assert new.exists()
    shutil.rmtree(folder)
    sweeper.join(timeout=10)
    assert not sweeper.is_alive()


def test_the_process_sweeps_what_it_keeps() -> None:
    kept = Path(frame.write_downloads({}, [])[0]).parents[1]
    [sweeper] = [thread for thread in threading.enumerate() if thread.name == "sweep"]
    assert sweeper.daemon
    assert kept == frame._workspace() / "kept"


def test_what_is_said_of_removal_is_true_and_said_alike() -> None:
    assert frame.RETENTION_SEC + frame.SWEEP_SEC < 70 * 60
    assert "70 minutes" in frame.REMOVAL
    root = Path(__file__).resolve().parents[2]
    for name in ("description", "inpainting", "lyrics", "preservation"):
        card = (root / "spaces" / name / "README.md").read_text(encoding="utf-8")
        assert frame.REMOVAL in " ".join(card.split()), f"{name}: the card says something else of removal"
        assert "hour" not in card.partition("## Privacy")[2]


def test_a_folder_of_this_process_goes_with_it() -> None:
    code = "from music_evals.ui.frame import write_downloads; print(write_downloads({}, [])[0])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    path = Path(run.stdout.strip())
    assert path.parts[-3] == "kept"
    assert not path.parents[2].exists()


def test_the_frame_does_not_import_gradio() -> None:
    code = "import sys, music_evals.ui.frame, music_evals.ui.metric_page.page; sys.exit('gradio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("path", "refused"),
    [("http://a.b/c.wav", True), (" HTTPS://a", True), ("file:///etc/passwd", True), ("/tmp/a:b.wav", False)],  # noqa: S108
)
@pytest.mark.usefixtures("stub_gradio")
def test_an_address_is_no_file(path: str, *, refused: bool) -> None:
    seen: list[Any] = []
    inputs = ["http://typed.text", [{"file": {"path": path, "url": "http://127.0.0.1:1/gradio_api/file=a"}}], None]
    if refused:
        with pytest.raises(ShownError):
            frame._validate_inputs(lambda *values: seen.append(values), "event", inputs)
        assert not seen
    else:
        frame._validate_inputs(lambda *values: seen.append(values), "event", inputs)
        assert seen == [("event", inputs)]


SERVE = """
import sys
import gradio as gr
from music_evals.errors import InvalidInputError
from music_evals.ui import frame
from music_evals.ui.words import Words

words = Words({"en": {"go": "Go"}, "zh": {"go": "开始"}})

def work(text, path, progress=lambda share, stage: None):
    progress(0.5, "Half")
    if text == "bad":
        raise InvalidInputError(f"{path}: <b>bad</b>")
    if text == "bug":
        raise KeyError("secret of the machine")
    return text.upper(), *frame.write_downloads({"text": text}, [{"text": text}])

with frame.space("Title <b>", "Intro.", words=words, max_upload_bytes=1000) as page:
    box, file = gr.Textbox(), gr.File()
    button, stop = gr.Button("Go"), gr.Button("Cancel")
    out = gr.Textbox()
    frame.on_click(button, work, [box, file], [out, *frame.downloads_panel()], name="work", cancel=stop)
    frame.language_switch(words, [(button, {"value": "go"})])
    frame.code_panel()
frame.launch(page, server_name="127.0.0.1", server_port=int(sys.argv[1]), quiet=True)
"""

ASK = """
import json, os, sys
from pathlib import Path
from gradio_client import Client, handle_file

url, folder = sys.argv[1:]
small, large = Path(folder, "small.txt"), Path(folder, "large.txt")
small.write_text("a")
large.write_text("a" * 2000)
client = Client(url, verbose=False, download_files=folder)
answers = {"good": client.predict("abc", handle_file(small), api_name="/work")}

def refused(*values):
    try:
        return client.predict(*values, api_name="/work")
    except Exception as error:
        return str(error)

answers["bad"] = refused("bad", handle_file(small))
answers["bug"] = refused("bug", handle_file(small))
answers["large"] = refused("abc", handle_file(large))
answers["url"] = refused("abc", {"path": "http://127.0.0.1:9/a.txt", "meta": {"_type": "gradio.FileData"}})
answers["passwd"] = refused("abc", {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}})
info = client.view_api(return_format="dict")
answers["api"] = list(info["named_endpoints"])
print(json.dumps(answers))
"""


@pytest.mark.gradio
@pytest.mark.slow
def test_a_served_page_keeps_its_limits(tmp_path: Path) -> None:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = os.environ | {"TMPDIR": str(temporary), "GRADIO_ANALYTICS_ENABLED": "False"}
    environment.pop("GRADIO_TEMP_DIR", None)
    server = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(port)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(url, server)
        asked = subprocess.run(
            [sys.executable, "-c", ASK, url, str(tmp_path)], capture_output=True, text=True, check=False, timeout=120
        )
        assert asked.returncode == 0, asked.stderr
        kept = list(temporary.rglob("small.txt"))
        for path in ("/etc/passwd", str(Path(frame.__file__))):
            assert httpx2.get(f"{url}/gradio_api/file={path}", timeout=10, trust_env=False).status_code == 403
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=60)
    answers = json.loads(asked.stdout.splitlines()[-1])
    assert answers["good"][0] == "ABC"
    assert answers["bad"] == "small.txt: &lt;b&gt;bad&lt;/b&gt;"
    assert "secret" not in answers["bug"]
    assert "size" in answers["large"].lower()
    assert answers["url"] == "this page takes uploaded files and no addresses"
    assert "root:" not in json.dumps(answers)
    assert answers["api"] == ["/work"]
    assert kept, "the upload was not kept where the page keeps uploads"
    assert not [path for path in temporary.rglob("*") if path.is_file()], "files of visitors stay behind"


def wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end and server.poll() is None:
        try:
            httpx2.get(f"{url}/gradio_api/info", timeout=5, trust_env=False).raise_for_status()
        except httpx2.HTTPError:
            time.sleep(0.2)
        else:
            return
    pytest.fail("the page was not served")
