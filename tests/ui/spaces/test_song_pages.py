"""What both pages on songs have in common: they say where goes what is entered, and offer their calls to programs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SPACES = Path(__file__).resolve().parents[3] / "spaces"
# Page -> its calls, and elements that it has among others.
PAGES = {
    "lyrics": (
        ["add_section", "check_pattern", "derive_pattern", "score", "write"],
        {"lyrics", "pattern", "pattern_text", "language", "score", "cancel", "receipt", "code"},
    ),
    "description": (
        ["compare", "song_tags", "tag"],
        {"song", "set_a", "set_b", "language", "compare", "cancel", "receipt", "recording"},
    ),
}

BUILD = """
import json, os, runpy, sys
built = {}
for app in sys.argv[1:]:
    for hosted in ("", "org/page"):
        os.environ["SPACE_ID"] = hosted
        config = runpy.run_path(app)["build_demo"]().get_config_file()
        parts = [part["props"] for part in config["components"]]
        built.setdefault(app, []).append({
            "public": sorted(each["api_name"] for each in config["dependencies"] if each["api_visibility"] == "public"),
            "ids": [part["elem_id"] for part in parts if part.get("elem_id")],
            "about": next(part["value"] for part in parts if part.get("elem_id") == "about"),
        })
print(json.dumps(built))
"""


@pytest.mark.gradio
def test_pages_are_built_with_public_calls() -> None:
    """One process builds both, here and hosted: what takes its time is the import of Gradio."""
    apps = {str(SPACES / name / "app.py"): name for name in PAGES}
    command = [sys.executable, "-W", "ignore", "-c", BUILD, *apps]
    built = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
    for app, name in apps.items():
        calls, parts = PAGES[name]
        for found, stays in zip(built[app], (True, False), strict=True):
            assert len(found["ids"]) == len(set(found["ids"]))
            assert ("stays on the machine" if stays else "sent to the server of this Space") in found["about"]
            assert found["public"] == calls
            assert parts <= set(found["ids"])
