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
import subprocess
import sys
from pathlib import Path

import pytest

import music_evals
from music_evals.audio._decoding import READABLE
from music_evals.cli import main
from music_evals.metrics.catalogue import (
    INPAINTING_METRICS,
    LIKELIHOODS,
    LYRIC_SCORES,
    PRESERVATION_METRICS,
    metric_of,
)

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
METRICS = [*INPAINTING_METRICS, *LIKELIHOODS, *PRESERVATION_METRICS, *LYRIC_SCORES, "tag_semantic_similarity"]
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
PAGE_IDS = [str(path.relative_to(ROOT)) for path in PAGES]
# Modules that are entered by being run, or that only hold names.
FREE_OF_ALL = {"music_evals.__main__"}


@pytest.fixture(scope="module")
def readme() -> str:
    return README.read_text(encoding="utf-8")


def table_rows(text: str) -> dict[str, list[str]]:
    """Return name -> cells of every row of a table whose first cell is a name in backticks, perhaps a link."""
    rows = re.findall(r"^\| *\[?`(\w+)`(?:\]\([^)]*\))? *\|(.*)\| *$", text, re.MULTILINE)
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in rows}


@pytest.mark.parametrize("name", METRICS)
def test_readme_tells_range_and_direction_of_every_metric(name: str, readme: str) -> None:
    rows = table_rows(readme)
    assert name in rows, f"README.md needs a table row that begins with | `{name}` |"
    cells = " | ".join(rows[name])
    info = metric_of(name)
    high = "∞" if info.high == float("inf") else f"{info.high:.3f}".rstrip("0").rstrip(".")
    span = f"{info.low:g} to {high}"
    assert span in rows[name], f"README.md, row `{name}`: expected the range {span!r}, got {cells!r}"
    assert info.direction in cells, f"README.md, row `{name}`: expected {info.direction!r} is better, got {cells!r}"


def test_readme_names_every_window(readme: str) -> None:
    for window in ("metrics", "datasets_scripts", "models"):
        for path in (ROOT / window).iterdir():
            if path.is_dir() and path.name != "__pycache__":
                assert path.name in readme, f"README.md does not name {window}/{path.name}"


def test_readme_begins_with_two_commands(readme: str) -> None:
    assert "make run" in readme
    assert "make test" in readme


@pytest.mark.parametrize("command", ["run", "test", "check", "venv"])
def test_make_knows_the_commands(command: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{command}:", makefile, re.MULTILINE)


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "README.md"])
def test_the_usual_files_are_there(name: str) -> None:
    assert (ROOT / name).stat().st_size > 200


@pytest.mark.parametrize("window", ["metric", "data ?set", "model", "space"])
def test_contributing_holds_a_checklist_for_each_window(window: str) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.search(rf"^#+ Adding an? {window}\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.IGNORECASE | re.DOTALL)
    assert found, f"CONTRIBUTING.md has no heading `Adding a {window}`"
    assert len(re.findall(r"^(\d+\.|- )", found[1], re.MULTILINE)) >= 3


def run_cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; from music_evals.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.fixture(scope="module")
def verbs() -> list[str]:
    shown = run_cli("--help")
    assert shown.returncode == 0, shown.stderr
    listed = shown.stdout.partition("VERB\n")[2] or shown.stdout
    found = re.findall(r"^    ([a-z][\w-]*)(?= |$)", listed, re.MULTILINE)
    assert found, "music-evals --help lists its verbs, one a line"
    return found


def test_each_verb_is_in_the_readme(verbs: list[str], readme: str) -> None:
    missing = [verb for verb in verbs if f"music-evals {verb}" not in readme]
    assert not missing, f"README.md does not show: {', '.join(f'music-evals {verb}' for verb in missing)}"


@pytest.mark.parametrize("path", PAGES, ids=PAGE_IDS)
def test_commands_in_pages_are_verbs(path: Path, verbs: list[str]) -> None:
    shown = re.findall(r"music-evals ([a-z][\w-]*)", path.read_text(encoding="utf-8"))
    assert set(shown) <= set(verbs), f"{path.name} names commands that do not exist: {sorted(set(shown) - set(verbs))}"


@functools.cache
def help_of(*words: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0
    return printed.getvalue()


@pytest.mark.parametrize("path", PAGES, ids=PAGE_IDS)
def test_options_in_pages_are_known(path: Path) -> None:
    """A command line in a page is accepted by the parser as far as its options go."""
    blocks = re.findall(
        r"^```(?:bash|sh|console)\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    for line in lines:
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if words[:1] != ["music-evals"]:
            continue
        known = help_of(words[1])
        if re.search(r" (STEP|STUDY)\s+\.\.\.", known):  # such as `listening-test build`
            known = help_of(*words[1:3])
        for option in [word.partition("=")[0] for word in words if word.startswith("--")]:
            assert option in known, f"{path.name}: music-evals {words[1]} has no option {option}"


@pytest.mark.parametrize("path", PAGES, ids=PAGE_IDS)
def test_snippets_run(path: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every Python block with prompts runs where the repository's folders are, and prints what it says."""
    for name in ("datasets_scripts", "examples", "metrics", "models", "spaces"):
        (tmp_path / name).symlink_to(root / name)
    monkeypatch.chdir(tmp_path)  # what snippets write does not stay in the repository
    text = path.read_text(encoding="utf-8")
    blocks = [block for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE) if ">>>" in block]
    names: dict[str, object] = {}
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for number, block in enumerate(blocks):
        example = doctest.DocTestParser().get_doctest(block, names, f"{path.name} block {number}", str(path), 0)
        assert runner.run(example, clear_globs=False).failed == 0
        names = example.globs


@pytest.mark.parametrize("path", PAGES, ids=PAGE_IDS)
def test_imports_of_ours_in_pages_are_there(path: Path) -> None:
    """Snippets without prompts do not run in tests; what they import from us is there all the same."""
    blocks = re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    lines = [line.removeprefix(">>> ").strip() for block in blocks for line in block.splitlines()]
    for line in lines:
        match = re.fullmatch(r"from (music_evals[\w.]*) import ([\w, ]+)", line)
        if match:
            module = importlib.import_module(match[1])
            missing = [name for name in match[2].split(", ") if not hasattr(module, name)]
            assert not missing, f"{path.name}: {line!r}: there is no {missing}"


def test_the_tour_of_the_readme_is_python_that_runs(readme: str) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    tour = "\n".join(blocks)
    assert "evaluate.load(" in tour
    assert "load_dataset(" in tour
    assert all(">>>" in block for block in blocks), "a block without prompts is not run by any test"


@pytest.mark.parametrize("path", PAGES, ids=PAGE_IDS)
def test_links_within_the_repository_lead_somewhere(path: Path) -> None:
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:|#|reports/", target):
            continue  # the reports are made when the site is built
        assert (path.parent / target.partition("#")[0]).exists(), f"{path.name} links to {target}, which is not there"


def all_modules() -> list[str]:
    found = pkgutil.walk_packages(music_evals.__path__, "music_evals.")
    return [name for name in (module.name for module in found) if name not in FREE_OF_ALL]


@pytest.mark.parametrize("name", all_modules())
def test_all_is_what_is_there(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    public = getattr(module, "__all__", None)
    assert public is not None or module.__file__.endswith("__init__.py"), f"{name} declares no __all__"
    for attribute in public or []:
        assert hasattr(module, attribute), f"{name}.__all__ names {attribute}, which is not there"
    assert len(set(public or [])) == len(public or [])


def test_pages_name_all_recordings_that_are_read() -> None:
    """One list of kinds, wherever a page or a card names them: that of the decoders."""
    pages = [*PAGES, ROOT / "src/music_evals/ui/spaces/preservation.py"]
    texts = {path: " ".join(path.read_text(encoding="utf-8").split()) for path in pages}
    naming = {path: text for path, text in texts.items() if re.search(r"WAV, FLAC|AIFF|of a recording \(", text)}
    assert len([path for path in naming if path.is_relative_to(ROOT / "metrics")]) == 20
    assert {ROOT / "docs/tasks/preservation.md", ROOT / "spaces/preservation/README.md", pages[-1]} <= naming.keys()
    partly = [str(path.relative_to(ROOT)) for path, text in naming.items() if "AIFF" in text.replace(READABLE, "")]
    unnamed = [str(path.relative_to(ROOT)) for path, text in naming.items() if READABLE not in text]
    assert not partly + unnamed, f"they should say: {READABLE}"


def test_pages_name_no_absolute_path() -> None:
    for path in PAGES:
        found = re.search(r"(?<![\w.:/])/(home|work|root|tmp|Users)/\w+", path.read_text(encoding="utf-8"))
        assert not found, f"{path.name} names a path of one machine: {found[0] if found else ''}"
