"""What strangers look for around the code: versions, citation, CI and hooks agree with what is there."""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.rules import ROOT, over, place, text_of

import music_evals
from music_evals.metrics.catalogue import CATALOGUE
from music_evals.yaml_files import load_yaml

GITHUB = ROOT / ".github"
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
PAPERS = sorted({metric.paper for metric in CATALOGUE.values()} - {""})


def read(path: Path) -> Any:
    return load_yaml(text_of(path), path)


def plain(title: str) -> str:
    """A title without the braces of BibTeX, its line breaks and its capitals."""
    return " ".join(re.sub(r"[{}]", "", title).split()).casefold()


@pytest.fixture(scope="module")
def citation() -> dict[str, Any]:
    return read(ROOT / "CITATION.cff")


def test_package_citation_and_changelog_name_one_version(citation: dict[str, Any]) -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d[^]]*)\] - (\d{4}-\d\d-\d\d)$", changelog, re.MULTILINE)
    assert released, "CHANGELOG.md needs a heading such as ## [0.2.0] - 2026-11-22"
    version, date = released[0]
    assert version == music_evals.__version__ == citation["version"]
    assert dt.date.fromisoformat(date) == citation["date-released"]


def test_the_citation_has_what_its_format_requires(citation: dict[str, Any]) -> None:
    """Citation File Format 1.2.0: the keys that it requires, and the values that are easily mistaken."""
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "license"} <= citation.keys()
    types = {"article", "book", "conference-paper", "data", "dataset", "generic", "report", "software", "thesis"}
    for entry in (citation, *citation["references"]):
        assert entry["type"] in types
        assert entry["title"]
        assert entry["authors"]
        for author in entry["authors"]:
            assert author.keys() in ({"name"}, {"family-names", "given-names"}), author
        assert isinstance(entry.get("year", 0), int)
        assert not entry.get("doi", "10.").startswith("http"), "a DOI, not its address"


@over(PAPERS)
def test_a_paper_is_cited_as_on_the_cards_of_its_metrics(key: str, citation: dict[str, Any]) -> None:
    cited = {plain(entry["title"]): entry for entry in citation["references"]}
    entries = [
        entry
        for card in sorted((ROOT / "metrics").glob("*/README.md"))
        for entry in re.findall(rf"^@\w+{{{key},\n(.*?)^}}", text_of(card), re.MULTILINE | re.DOTALL)
    ]
    assert entries, f"no card holds the BibTeX entry {key}"
    for entry in entries:
        title, authors, year = (
            re.search(rf"^ *{name} *= *{{(.*?)}},?$", entry, re.MULTILINE | re.DOTALL)[1]  # type: ignore[index]
            for name in ("title", "author", "year")
        )
        if plain(title) not in cited:
            continue  # the card is enough; a paper whose tables are made here stands in CITATION.cff too
        reference = cited[plain(title)]
        assert reference["year"] == int(year)
        families = [author.get("family-names") or author["name"] for author in reference["authors"]]
        names = re.split(r"\s+and\s+", authors.replace(r"{\'a}", "á"))
        assert families == [name.partition(",")[0] for name in names]


@pytest.fixture(scope="module")
def sections() -> list[str]:
    [listed] = re.findall(r"^SECTIONS=\((.*)\)$", (ROOT / ".ci/run").read_text(encoding="utf-8"), re.MULTILINE)
    return listed.split()


def test_the_workflow_runs_our_sections_and_nothing_else(sections: list[str]) -> None:
    workflow = read(GITHUB / "workflows/ci.yml")
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["group"]
    for job in workflow["jobs"].values():
        commands = [step["run"] for step in job["steps"] if "run" in step]
        assert commands == [".ci/run ${{ matrix.sections }}"]
        assert all(
            re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|[0-9a-f]{40})", step["uses"]) for step in job["steps"] if "uses" in step
        )
        runs = job["strategy"]["matrix"]["include"]
        assert all(set(run["sections"].split()) <= set(sections) for run in runs)
        oldest = [section for run in runs if run["python"] == "3.11" for section in run["sections"].split()]
        assert sorted(oldest) == sorted(sections), "the oldest Python that is supported runs each section once"


def test_every_section_is_a_function_and_no_other_word_runs(sections: list[str]) -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert all(re.search(rf"^{section}\(\) {{", script, re.MULTILINE) for section in sections)
    ended = subprocess.run([ROOT / ".ci/run", "tset"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"no section 'tset'; there are: {' '.join(sections)}\n"


@over(FORMS, place)
def test_forms_of_issues_ask_for_what_is_needed(form: Path) -> None:
    issue = read(form)
    assert issue["name"]
    assert issue["description"]
    fields = [field for field in issue["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields)
    assert any(field["validations"]["required"] for field in fields)
    for field in fields:
        assert field["type"] in {"input", "textarea", "dropdown", "checkboxes"}
        assert field["attributes"]["label"]


def test_hooks_are_tools_of_make_check() -> None:
    """They stand in .venv: nothing is downloaded, and hooks and `make check` never differ."""
    [local] = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local"
    check = re.search(r"^check:.*?(?=^\S)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert check
    tools = set(re.findall(r"\$\(BIN\)/(\w+)", check[0])) - {"python"}
    used = {hook["entry"].split()[0] for hook in local["hooks"]} - {"git"}
    assert used == {f".venv/bin/{tool}" for tool in tools}
    assert {hook["language"] for hook in local["hooks"]} == {"system"}


def test_the_lowest_versions_are_those_of_the_core() -> None:
    printed = subprocess.run(
        [sys.executable, ROOT / ".ci/lowest.py"], capture_output=True, text=True, check=True
    ).stdout
    assert "numpy==2.0\n" in printed
    core = re.search(r"^dependencies = \[\n(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.MULTILINE | re.DOTALL)
    assert core
    assert printed.replace("==", ">=").splitlines() == re.findall(r'^ *"(.*)",$', core[1], re.MULTILINE)
