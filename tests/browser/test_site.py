"""The documentation, read from the disk: the search finds, and nothing is asked for elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"index.md": "# Home\n", "other.md": "# Other\n\n## A heading\n\nHere the word tambourine is.\n"}


@pytest.fixture(scope="module")
def small_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pages under the settings of the documentation."""
    pytest.importorskip("mkdocs", reason="mkdocs is absent; install it with the extra docs")
    folder = tmp_path_factory.mktemp("small")
    shutil.copytree(ROOT / "docs" / "static", folder / "docs" / "static")
    for name, text in PAGES.items():
        (folder / "docs" / name).write_text(text)
    own = f"INHERIT: {ROOT / 'mkdocs.yml'}\ndocs_dir: docs\nsite_dir: site\nhooks: []\nwatch: []\nnav: []\n"
    (folder / "mkdocs.yml").write_text(own + "plugins: [search, offline]\n")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run([sys.executable, "-m", "mkdocs", "build"], cwd=folder, env=environment, check=True)
    return folder / "site"


@pytest.mark.slow
@pytest.mark.browser
def test_the_search_works_without_a_server(chromium: Any, small_site: Path) -> None:
    page = chromium.new_page()
    requests, errors = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((small_site / "index.html").as_uri())
    page.get_by_placeholder("Search").click()
    page.keyboard.type("tambourine")
    page.locator(".md-search-result__link", has_text="A heading").first.click()
    page.wait_for_url("**/other.html*")
    assert errors == []
    assert all(url.startswith(("file:", "about:", "blob:")) for url in requests)
    page.close()
