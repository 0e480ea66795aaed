"""What both pages on songs have in common: they say where goes what is entered, and offer their calls to programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import pages

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


@pytest.mark.gradio
@pytest.mark.parametrize(("name", "hosted"), [(name, hosted) for name in PAGES for hosted in ("", "org/page")])
def test_pages_are_built_with_public_calls(name: str, hosted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPACE_ID", hosted)
    config = pages.build(SPACES / name / "app.py").get_config_file()
    parts = [part["props"] for part in config["components"]]
    ids = [part["elem_id"] for part in parts if part.get("elem_id")]
    assert len(ids) == len(set(ids))
    [about] = [part["value"] for part in parts if part.get("elem_id") == "about"]
    assert ("sent to the server of this Space" if hosted else "stays on the machine") in about
    calls, wanted = PAGES[name]
    assert sorted(pages.public_names(config)) == calls
    assert wanted <= set(ids)
