"""What is said is so: tables agree with the library, snippets run, commands and files that are named exist."""

from __future__ import annotations

import contextlib
import doctest
import functools
import importlib
import io
import pkgutil
import re
import shlex
from pathlib import Path

import pytest
from tests.conformance.rules import ROOT, over, place, text_of

import music_evals
from music_evals.audio.decoding import READABLE
from music_evals.cli import main

README = ROOT / "README.md"
PAGES = sorted(
    path
    for pattern in (
        "*.md",
        "examples/*.md",
        "metrics/*/*.md",
        "datasets_scripts/*/*.md",
        "models/**/*.md",
        "spaces/*/*.md",
    )
    for path in ROOT.glob(pattern)
)
PAGES += sorted((ROOT / "docs").rglob("*.md"))
of_each_page = over(PAGES, place)
# Modules that are entered by being run, or that only hold names.
FREE_OF_ALL = {"music_evals.__main__"}
API = "\n".join(text_of(path) for path in sorted((ROOT / "docs/api").glob("*.md")))


@pytest.fixture(scope="module")
def readme() -> str:
    return text_of(README)


def test_the_readme_is_read_in_one_go() -> None:
    assert README.stat().st_size <= 12_000


def test_readme_begins_with_two_commands(readme: str) -> None:
    assert "make run" in readme
    assert "make test" in readme


def test_make_knows_the_commands() -> None:
    known = re.findall(r"^(\w+):", text_of(ROOT / "Makefile"), re.MULTILINE)
    assert {"run", "test", "check", "venv"} <= set(known)


@over(["CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "README.md"])
def test_the_usual_files_are_there(name: str) -> None:
    assert (ROOT / name).stat().st_size > 200


@over(["metric", "data ?set", "model", "space"])
def test_contributing_holds_a_checklist_for_each_kind(kind: str) -> None:
    text = text_of(ROOT / "CONTRIBUTING.md")
    found = re.search(rf"^#+ Adding an? {kind}\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.IGNORECASE | re.DOTALL)
    assert found, f"CONTRIBUTING.md has no heading `Adding a {kind}`"
    assert len(re.findall(r"^(\d+\.|- )", found[1], re.MULTILINE)) >= 3


@functools.cache
def help_of(*words: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0
    return printed.getvalue()


@pytest.fixture(scope="module")
def verbs() -> list[str]:
    shown = help_of()
    listed = shown.partition("VERB\n")[2] or shown
    found = re.findall(r"^    ([a-z][\w-]*)(?= |$)", listed, re.MULTILINE)
    assert found, "music-evals --help lists its verbs, one a line"
    return found


def test_the_page_of_commands_has_the_help_of_each_verb() -> None:
    assert "<!-- insert: help -->" in text_of(ROOT / "docs" / "commands.md")


@of_each_page
def test_commands_in_pages_are_verbs(path: Path, verbs: list[str]) -> None:
    shown = re.findall(r"music-evals ([a-z][\w-]*)", text_of(path))
    assert set(shown) <= set(verbs), f"commands that do not exist: {sorted(set(shown) - set(verbs))}"


@of_each_page
def test_options_in_pages_are_known(path: Path) -> None:
    """A command line in a page is accepted by the parser as far as its options go."""
    blocks = re.findall(r"^```(?:bash|sh|console)\n(.*?)^```", text_of(path), re.DOTALL | re.MULTILINE)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    for line in lines:
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if words[:1] != ["music-evals"]:
            continue
        known = help_of(words[1])
        if re.search(r" (STEP|STUDY)\s+\.\.\.", known):  # such as `listening-test build`
            known = help_of(*words[1:3])
        for option in [word.partition("=")[0] for word in words if word.startswith("--")]:
            assert option in known, f"music-evals {words[1]} has no option {option}"


@pytest.fixture
def beside_the_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand where the repository's folders are; what is written does not stay in the repository."""
    for name in ("datasets_scripts", "examples", "metrics", "models", "spaces"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)


def blocks_with_prompts(path: Path) -> list[str]:
    shown = re.sub(r"^````.*?^````$", "", text_of(path), flags=re.DOTALL | re.MULTILINE)  # pages in a page do not run
    blocks = re.findall(r"^```python\n(.*?)^```", shown, re.DOTALL | re.MULTILINE)
    return [block for block in blocks if ">>>" in block]


# the cards of metrics are run by test_metrics.py
@pytest.mark.slow
@over([path for path in PAGES if blocks_with_prompts(path) and not path.is_relative_to(ROOT / "metrics")], place)
def test_snippets_run(path: Path, beside_the_folders: None) -> None:
    """Every Python block with prompts runs where the repository's folders are, and prints what it says."""
    names: dict[str, object] = {}
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for number, block in enumerate(blocks_with_prompts(path)):
        example = doctest.DocTestParser().get_doctest(block, names, f"{path.name} block {number}", str(path), 0)
        said = io.StringIO()
        failed = runner.run(example, out=said.write, clear_globs=False).failed
        assert not failed, said.getvalue()
        names = example.globs


@of_each_page
def test_imports_of_ours_in_pages_are_there(path: Path) -> None:
    """Snippets without prompts do not run in tests; what they import from us is there all the same."""
    blocks = re.findall(r"^```python\n(.*?)^```", text_of(path), re.DOTALL | re.MULTILINE)
    lines = [line.removeprefix(">>> ").strip() for block in blocks for line in block.splitlines()]
    for line in lines:
        match = re.fullmatch(r"from (music_evals[\w.]*) import ([\w, ]+)", line)
        if match:
            module = importlib.import_module(match[1])
            missing = [name for name in match[2].split(", ") if not hasattr(module, name)]
            assert not missing, f"{line!r}: there is no {missing}"


def test_the_tour_of_the_readme_is_python_that_runs(readme: str) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    tour = "\n".join(blocks)
    assert "evaluate.load(" in tour
    assert "load_dataset(" in tour
    assert all(">>>" in block for block in blocks), "a block without prompts is not run by any test"


@of_each_page
def test_links_within_the_repository_lead_somewhere(path: Path) -> None:
    text = re.sub(r"^```.*?^```", "", text_of(path), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:|#|reports/", target):
            continue  # the reports are made when the site is built
        assert (path.parent / target.partition("#")[0]).exists(), f"links to {target}, which is not there"


def all_modules() -> list[str]:
    found = pkgutil.walk_packages(music_evals.__path__, "music_evals.")
    return [name for name in (module.name for module in found) if name not in FREE_OF_ALL]


@over(all_modules())
def test_all_is_what_is_there(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__, "has no docstring"
    public = getattr(module, "__all__", None)
    in_api = re.search(rf"^::: {re.escape(name)}$", API, re.MULTILINE) and not module.__file__.endswith("__init__.py")
    assert public is not None or not in_api, "is a module of docs/api, and declares no __all__"
    for attribute in public or []:
        assert hasattr(module, attribute), f"__all__ names {attribute}, which is not there"
    assert len(set(public or [])) == len(public or [])


def test_pages_name_all_recordings_that_are_read() -> None:
    """One list of kinds, wherever a page or a card names them: that of the decoders."""
    pages = [*PAGES, ROOT / "src/music_evals/ui/spaces/preservation.py"]
    texts = {path: " ".join(text_of(path).split()) for path in pages}
    naming = {path: text for path, text in texts.items() if re.search(r"WAV, FLAC|AIFF|of a recording \(", text)}
    assert len([path for path in naming if path.is_relative_to(ROOT / "metrics")]) == 22
    assert {ROOT / "docs/tasks/preservation.md", ROOT / "spaces/preservation/README.md", pages[-1]} <= naming.keys()
    partly = [place(path) for path, text in naming.items() if "AIFF" in text.replace(READABLE, "")]
    unnamed = [place(path) for path, text in naming.items() if READABLE not in text]
    assert not partly + unnamed, f"they should say: {READABLE}"


@of_each_page
def test_pages_name_no_absolute_path(path: Path) -> None:
    found = re.search(r"(?<![\w.:/])/(home|work|root|tmp|Users)/\w+", text_of(path))
    assert not found, f"a path of one machine: {found[0] if found else ''}"
