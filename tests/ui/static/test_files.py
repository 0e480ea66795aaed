"""Every file of scripts and styles keeps to the rules that no linter knows: it reaches for nothing outside the page."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import music_evals

PACKAGE = Path(music_evals.__file__).parent
ROOT = Path(__file__).resolve().parents[3]
SHARED = PACKAGE / "benchmark" / "static"  # of pages and reports
SCRIPTS = [*sorted(PACKAGE.glob("ui/static/*.js")), SHARED / "ab_player.js", SHARED / "pairs.js"]
STYLES = [*sorted(PACKAGE.glob("ui/static/*.css")), SHARED / "ab_player.css", SHARED / "timelines.css"]
FORBIDDEN = {
    r"\.(inner|outer)HTML\b|insertAdjacentHTML|document\.write": "text goes in as text: textContent, append",
    r"\beval\(|new Function": "text is never run",
    r"\bimport\b.*from|\bimport\(|\brequire\(": "files are put together by `assets.script`",
}
SVG = "http://www.w3.org/2000/svg"  # a name, not an address


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_strict_and_writes_no_markup(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert '"use strict";' in text
    assert "globalThis.musicEvals" in text  # one name for the whole page
    for pattern, reason in FORBIDDEN.items():
        assert not re.search(pattern, text), reason


@pytest.mark.parametrize("path", [*SCRIPTS, *STYLES], ids=lambda path: path.name)
def test_no_file_reaches_outside(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace(SVG, "")
    assert not re.search(r"https?:|//[a-z]+\.[a-z]+|@import|url\(", text)
    # Gradio passes a style through Handlebars and a template literal
    if path.suffix == ".css":
        assert not any(mark in text for mark in ("{{", "`", "${", "\\"))


def test_scripts_are_found() -> None:
    assert {"ab_player.js", "listening_test.js", "roll_editor.js", "rolls.js"} <= {path.name for path in SCRIPTS}


def test_the_linter_has_nothing_to_say() -> None:
    command = shutil.which("oxlint", path=Path(sys.executable).parent)
    if command is None:
        pytest.skip("oxlint is absent; install it with: pip install oxlint")
    config = ROOT / ".oxlintrc.json"
    run = subprocess.run(
        [command, "--config", config, "--deny-warnings", *SCRIPTS], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout
