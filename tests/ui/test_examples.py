"""Examples of pages live as long as the page, while what visitors upload and what is made for them goes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from music_evals.ui.frame import keep_file

ROOT = Path(__file__).resolve().parents[2]

SERVE = """
import importlib.util, json, sys, time
from pathlib import Path
from music_evals.ui import frame

frame.RETENTION_SEC, frame.SWEEP_SEC = float(sys.argv[3]), 0.5
from gradio_client import Client, handle_file
from tests.pages import WITH_EXAMPLES

def build(name):
    spec = importlib.util.spec_from_file_location("app_" + name, Path("spaces", name, "app.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.build_demo()

def presses(page):
    return [part for part in page.blocks.values() if part.get_block_name() == "dataset"]

pages = {name: build(name) for name in WITH_EXAMPLES}
clients = {}
for name, page in pages.items():
    _, url, _ = frame.launch(page, prevent_thread_lock=True, quiet=True, server_name="127.0.0.1")
    clients[name] = Client(url, verbose=False)
upload = Path(sys.argv[1]) / "upload.mid"
pages["preservation"].upload_file_set.add(str(upload))
time.sleep(2 * (frame.RETENTION_SEC + frame.SWEEP_SEC))

found = {"upload": upload.exists(), "pressed": {}}
for name, page in pages.items():
    [dataset] = presses(page)
    for number, row in enumerate(dataset.raw_samples):
        answer = clients[name].predict(number, api_name="/example")
        answers = answer if isinstance(answer, tuple) else [answer]
        files = [Path(one["value"]) for one in answers]
        found["pressed"][f"{name} {number}"] = [path.name for path in files if path.stat().st_size]
        for command in json.loads(sys.argv[2]).get(f"{name} {number}", []):
            wanted = [handle_file(path) for path in files] + command["inputs"]
            found[f"{name} {number}"] = clients[name].predict(*wanted, api_name=command["api"])[1]
for page in pages.values():
    page.close()
print(json.dumps(found))
"""


def served(folder: Path, commands: dict[str, Any], *, retention_sec: int) -> dict[str, Any]:
    """Serve every Space that has examples for two retentions, press all, and run what is asked for on some."""
    (folder / "upload.mid").write_bytes(b"of a visitor")
    command = [sys.executable, "-c", SERVE, str(folder), json.dumps(commands), str(retention_sec)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=300)
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


@pytest.mark.gradio
def test_an_example_that_is_written_anew_is_the_copy_that_stays(tmp_path: Path) -> None:
    import gradio as gr
    from gradio.processing_utils import save_file_to_cache

    field, paths = gr.File(), [tmp_path / name / "tune.mid" for name in ("first", "second")]
    for path in paths:
        path.parent.mkdir()
        path.write_bytes(b"MThd")
    keep_file(field, str(paths[0]))
    assert field.keep_in_cache == {save_file_to_cache(paths[1], field.GRADIO_CACHE)}


@pytest.mark.slow
@pytest.mark.gradio
def test_a_space_served_for_two_retentions_plays_its_examples(tmp_path: Path) -> None:
    found = served(tmp_path, {}, retention_sec=1)
    assert not found["upload"]  # what is old and a visitor's has gone meanwhile
    assert {name: len(files) for name, files in found["pressed"].items()} == {
        "editing 0": 1,
        **{f"preservation {number}": 2 for number in range(5)},
    }


@pytest.mark.gradio
@pytest.mark.slow
def test_examples_of_the_second_day_are_edited_and_compared(tmp_path: Path) -> None:
    inputs = ["equaliser", "", "", "", "", "", 0, False, ""]
    compare = {"api": "/compare", "inputs": ["corrected", False]}
    commands = {"editing 0": [{"api": "/edit", "inputs": inputs}], "preservation 4": [compare]}
    found = served(tmp_path, commands, retention_sec=4)  # in which the results of a visitor are fetched
    assert found["editing 0"]
    assert found["preservation 4"]["scores"]["motif_jaccard"]["value"] is not None
