"""Every folder under `spaces/` obeys the contract of a Space."""

from __future__ import annotations

import ast
import inspect
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests import pages
from tests.conformance.rules import ROOT, SOURCE, card_of, code_lines, over, place, subfolders, text_of, tree_of

ALL = subfolders("spaces")
DOCKER = [path for path in ALL if (path / "Dockerfile").is_file()]
FOLDERS = [path for path in ALL if path not in DOCKER]  # of Gradio
NAMES = [path.name for path in FOLDERS]
of_each_space, of_each_docker_space = over(FOLDERS, place), over(DOCKER, place)
SOURCES = sorted((SOURCE / "ui").rglob("*.py"))
FILES = {"app.py", "README.md", "requirements.txt"}
MAX_CODE_LINES = 40
HEAD = {
    "title", "emoji", "colorFrom", "colorTo", "sdk", "sdk_version", "python_version", "app_file", "pinned", "license",
    "tags", "short_description",
}  # fmt: skip
COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}  # what the Hub takes
MAX_SHORT = 60  # characters of a short description
MAX_FILE = 2**20
DOCKER_PAGES = {"editing_study": b'<script type="application/json" id="study">', "caimap": b'name="password"'}
"""Docker Space -> what its first page holds."""
DOCKER_FILES = {"Dockerfile", "README.md", "requirements.txt", "start.sh"}
DOCKER_HEAD = {
    "title",
    "emoji",
    "colorFrom",
    "colorTo",
    "sdk",
    "app_port",
    "pinned",
    "license",
    "tags",
    "short_description",
}
ABOUT = ("How to use", "Limits", "Privacy", "Licence")
FORBIDDEN_OPTIONS = {"share", "allowed_paths", "auth"}
FETCHERS = {"requests", "urllib.request", "httpx", "httpx2", "aiohttp", "ftplib"}


def calls(path: Path) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call))


def test_there_are_spaces() -> None:
    assert NAMES, "no folder below spaces/"


@of_each_space
def test_files(folder: Path) -> None:
    found = {path.name for path in folder.iterdir()} - {"__pycache__"}
    assert found >= FILES
    scripts = {name for name in found if name.endswith(".py")}
    assert scripts == {"app.py"}, "a Space holds one thin script; what it does belongs into src/music_evals/ui"
    for path in folder.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert path.stat().st_size <= MAX_FILE, f"{path.name}: more than {MAX_FILE} bytes"
            assert path.suffix not in {".pkl", ".pickle", ".pt", ".bin"}, f"{path.name}: no pickles"


@of_each_space
def test_the_app_is_thin(folder: Path) -> None:
    lines = code_lines(folder / "app.py")
    assert lines <= MAX_CODE_LINES, f"{lines} lines of code; the logic belongs into src/music_evals/ui"


@of_each_space
def test_the_app_builds_and_launches_only_as_a_script(folder: Path) -> None:
    tree = tree_of(folder / "app.py")
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    defined |= {
        name.asname or name.name for node in tree.body if isinstance(node, ast.ImportFrom) for name in node.names
    }
    assert "build_demo" in defined
    at_top = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Expr)]
    assert not any("serve(" in line or "launch(" in line for line in at_top)
    [last] = [node for node in tree.body if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)]
    assert [ast.unparse(line) for line in last.body] == ["serve(build_demo, __file__)"]
    launched = [name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in [node.module] if name]
    assert "music_evals.ui.frame" in launched, "the frame serves: it bounds uploads and opens no folder"


@of_each_space
def test_card_head(folder: Path) -> None:
    head, _ = card_of(folder)
    assert set(head) >= HEAD
    assert (head["sdk"], head["app_file"], head["pinned"]) == ("gradio", "app.py", False)
    assert (str(head["sdk_version"]), str(head["python_version"])) == ("6.31.0", "3.12")
    assert isinstance(head["python_version"], str), "3.12 without quotes is a number"
    assert {head["colorFrom"], head["colorTo"]} <= COLOURS
    assert head["license"] == "apache-2.0"
    assert "music" in head["tags"]
    assert 10 <= len(head["short_description"]) <= MAX_SHORT
    assert len(head["emoji"]) <= 2


@of_each_space
def test_card_text(folder: Path) -> None:
    _, text = card_of(folder)
    assert text.lstrip().startswith("# ")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    for wanted in ABOUT:
        assert any(heading.startswith(wanted) for heading in headings), f"the card says nothing on: {wanted}"
    assert "gradio_client" in text, "the card shows how a program calls the Space"
    assert "api_name" in text


@of_each_space
def test_requirements_bring_the_package_and_pin_no_torch(folder: Path) -> None:
    lines = [line for line in text_of(folder / "requirements.txt").splitlines() if line and line[0] != "#"]
    assert any(re.match(r"music[_-]evals(\[[a-z,]+\])?\b", line) for line in lines)
    assert not any(re.match(r"(torch|tensorflow|jax|gradio)\b", line) for line in lines), "the Hub brings these"


@of_each_space
def test_debian_packages_are_names(folder: Path) -> None:
    path = folder / "packages.txt"
    for line in path.read_text().splitlines() if path.exists() else []:
        assert re.fullmatch(r"[a-z0-9][a-z0-9+.-]*", line), f"packages.txt: {line!r}"


@over([*SOURCES, *(folder / "app.py" for folder in FOLDERS)], place)
def test_nothing_is_fetched_shared_or_opened(path: Path) -> None:
    """No page takes a URL, makes a public link, opens a folder or talks to another machine."""
    for node in ast.walk(tree_of(path)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not set(names) & FETCHERS, f"line {node.lineno}: {names}"
    for call in calls(path):
        name = ast.unparse(call.func)
        options = {keyword.arg for keyword in call.keywords}
        if name.rpartition(".")[2] == "launch":
            assert not options & FORBIDDEN_OPTIONS, f"line {call.lineno}: {options & FORBIDDEN_OPTIONS}"
        if name in {"gr.Audio", "gr.Image", "gr.Video"}:
            sources = next((ast.literal_eval(k.value) for k in call.keywords if k.arg == "sources"), None)
            shown = any(k.arg == "interactive" and ast.unparse(k.value) == "False" for k in call.keywords)
            assert shown or sources == ["upload"], f"line {call.lineno}: {name} takes uploads only: sources=['upload']"
        assert name not in {"gr.load", "gr.set_static_paths"}, f"line {call.lineno}: {name}"


def unexplained(function: Callable[..., Any]) -> list[str]:
    """Name the inputs of a call that programs which make it are told nothing of."""
    from gradio.utils import get_function_description

    words = get_function_description(function)[1]
    return [name for name in inspect.signature(function).parameters if name != "progress" and not words.get(name)]


@pytest.mark.slow
@pytest.mark.gradio
def test_every_space_builds() -> None:
    built = {folder.name: pages.build(folder / "app.py") for folder in FOLDERS}
    configs = {name: page.get_config_file() for name, page in built.items()}
    kinds = {name: [part["type"] for part in config["components"]] for name, config in configs.items()}
    assert [name for name in NAMES if "dataset" in kinds[name]] == list(pages.WITH_EXAMPLES)
    for name, page in built.items():
        config, names = configs[name], pages.public_names(configs[name])
        ids = {str(part["id"]): part["props"].get("elem_id") for part in config["components"]}
        assert config["title"], name
        assert names, f"{name}: no callback has a public API name"
        assert all(re.fullmatch(r"[a-z][a-z0-9_]*", str(api)) for api in names), f"{name}: {names}"
        calls = [event for event in config["dependencies"] if event["api_visibility"] == "public"]
        inputs = {event["api_name"]: unexplained(page.fns[event["id"]].fn) for event in calls}
        assert not any(inputs.values()), f"{name}: programs that call it are not told what these inputs are: {inputs}"
        assert {"skip", "intro"} <= set(ids.values()), f"{name}: not built in music_evals.ui.frame.space"
        assert page.max_upload_bytes <= 2 * 64 * 2**20
        assert page.delete_cache, f"{name}: temporary files stay"
        assert not pages.faults(page), name
        assert page.analytics_enabled is False
        assert any(event["cancels"] for event in config["dependencies"]), f"{name}: nothing can be cancelled"
        slow = waiting(config["dependencies"], ids)
        assert not slow, f"{name}: these wait for the server, what it answers is wired by frame.follow: {slow}"


def waiting(wired: list[dict[str, Any]], names: dict[str, str]) -> list[str]:
    """Name the events that stop a run whose input was changed, or wipe its results, and also wait for the server."""
    stopped = {number for event in wired for number in event["cancels"]}
    inputs = {part for event in wired if event["id"] in stopped for part in event["inputs"]}
    together: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for event in wired:
        for part, kind in event["targets"]:
            together.setdefault((part, kind), []).append(event)
    return [
        f"{names[str(part)]}.{kind}"
        for (part, kind), events in together.items()
        if part in inputs
        and any(event["cancels"] or (event["js"] and not event["backend_fn"]) for event in events)
        and any(event["backend_fn"] for event in events)
    ]


@of_each_docker_space
def test_a_docker_space_holds_no_logic(folder: Path) -> None:
    found = {path.name for path in folder.iterdir()}
    assert DOCKER_FILES <= found <= DOCKER_FILES | {"screenshot.png"}
    lines = text_of(folder / "start.sh").splitlines()
    assert len([line for line in lines if line and line[0] != "#"]) <= MAX_CODE_LINES


@of_each_docker_space
def test_a_docker_space_runs_as_a_user_and_starts_by_its_script(folder: Path) -> None:
    text = text_of(folder / "Dockerfile")
    assert re.search(r"^FROM python:3\.\d+-slim$", text, re.MULTILINE)
    assert "useradd --create-home --uid 1000 user" in text  # as the Hub runs it
    assert text.index("USER user") < text.index("RUN pip install")
    assert text.rstrip().endswith('CMD ["sh", "start.sh"]')


@of_each_docker_space
def test_docker_card(folder: Path) -> None:
    head, text = card_of(folder)
    assert set(head) >= DOCKER_HEAD
    assert (head["sdk"], head["app_port"], head["pinned"], head["license"]) == ("docker", 7860, False, "apache-2.0")
    assert {head["colorFrom"], head["colorTo"]} <= COLOURS
    assert 10 <= len(head["short_description"]) <= MAX_SHORT
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert all(any(heading.startswith(wanted) for heading in headings) for wanted in ABOUT)


@of_each_docker_space
def test_a_docker_space_brings_the_package(folder: Path) -> None:
    lines = text_of(folder / "requirements.txt").splitlines()
    assert any(re.match(r"music[_-]evals(\[[a-z,]+\])?$", line) for line in lines)


@pytest.mark.parametrize(
    ("docker_folder", "password"),
    [
        *(pytest.param(folder, "a long password", id=folder.name) for folder in DOCKER),
        pytest.param(ROOT / "spaces" / "caimap", "", marks=pytest.mark.slow, id="demo of caimap"),
    ],
)
def test_the_start_command_of_a_docker_space_serves_a_page(docker_folder: Path, password: str, tmp_path: Path) -> None:
    """Without Docker: with the package of this environment, and another home. The demo needs half a minute."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    places = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"HOME": str(tmp_path), "PORT": str(port), "PATH": places, "STUDY_DATASET": ""}
    environment["MUSIC_EVALS_CAIMAP_PASSWORD"] = password
    log = (tmp_path / "log.txt").open("wb")
    with log, subprocess.Popen(
        ["sh", "start.sh"], cwd=docker_folder, env=environment, stdout=log, stderr=log
    ) as process:  # fmt: skip
        try:
            page = served(f"http://127.0.0.1:{port}/", process)
        finally:
            process.terminate()
    assert DOCKER_PAGES[docker_folder.name] in page, (tmp_path / "log.txt").read_text()


def served(url: str, process: subprocess.Popen[bytes]) -> bytes:
    """Wait for a page; no bytes where its process ends first."""
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        try:
            return httpx2.get(url, timeout=5, trust_env=False, follow_redirects=True).raise_for_status().content
        except httpx2.HTTPError:
            time.sleep(0.1)
    return b""
