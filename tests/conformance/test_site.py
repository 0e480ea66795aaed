"""The documentation says what is there: public names have their place, commands run, the built site stands alone."""

from __future__ import annotations

import html
import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
import zlib
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from tests.conformance.rules import ROOT, SOURCE, over
from tests.conformance.test_readme import TOUR

from music_evals.cli import main

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
API = (DOCS / "api").glob("*.md")
ROOMS = ("annotations", "errors", "hf", "leaderboard", "lyrics", "metrics", "models", "pipelines", "protocols", "stats")
ROOMS += ("symbolic", "audio", "editing")
PICKED = (
    "benchmark.load", "benchmark.run", "hub.publishing", "hub.pushing", "datasets.known_edits.build",
    "datasets.caimd.schema", "datasets.medleydb_editing.build", "studies.pairs", "studies.stimuli", "studies.ratings",
    "studies.folders", "studies.listening.build", "studies.listening.results", "studies.listening.analysis",
    "studies.listening.agreement", "studies.editing.study", "studies.editing.answers", "studies.editing.report",
)  # fmt: skip
"""Public modules of rooms that users see a part of."""
INTERNAL = {
    *(f"audio.{name}" for name in ("containers", "decoding", "filters", "fluidsynth", "melody_net", "recordings")),
    *(
        f"audio.{name}"
        for name in ("optional_f0", "samples", "spectra", "store", "structure", "tempo_levels", "timbre")
    ),
    *(f"lyrics.{name}" for name in ("headers", "last_words", "model_files", "readings", "remarks")),
    *(f"metrics.{name}" for name in ("arrays", "bars", "dtw", "lyric_edits", "lyric_report", "motifs", "note_counts")),
    *(f"pipelines.{name}" for name in ("description_input", "intervals", "preservation_features", "suffixes")),
}
"""Modules of public rooms that the library alone calls."""


def identifiers(page: str) -> set[str]:
    """Return what has its place on a page: what it names, and the modules that the site inserts."""
    files = (
        path
        for pattern in re.findall(r"^<!-- insert: api (\S+) -->$", page, re.MULTILINE)
        for path in SOURCE.glob(pattern)
    )
    inserted = {".".join(path.relative_to(SOURCE.parent).with_suffix("").parts) for path in files}
    return inserted | set(re.findall(r"^::: (\S+)$", page, re.MULTILINE))


IDENTIFIERS = {name for page in API for name in identifiers(page.read_text(encoding="utf-8"))}


def public_modules() -> list[str]:
    """Return the modules of the public rooms; where a room names what is public itself, it speaks for its modules."""
    found = [f"music_evals.{name}" for name in PICKED]
    for room in ROOMS:
        folder = SOURCE / room.replace(".", "/")
        front = folder / "__init__.py" if folder.is_dir() else SOURCE / f"{room}.py"
        if "\n__all__ = " in front.read_text(encoding="utf-8"):
            found.append(f"music_evals.{room}")
        else:
            found += [f"music_evals.{room}.{path.stem}" for path in folder.glob("*.py") if path.stem[0] != "_"]
    return sorted(set(found) - {f"music_evals.{name}" for name in INTERNAL})


@over(public_modules())
def test_a_public_module_has_its_place_in_the_api(name: str) -> None:
    assert name in IDENTIFIERS, f"a page of docs/api needs the line ::: {name}"


def test_names_that_pages_tell_of_have_their_place() -> None:
    """Whatever README, cards and CONTRIBUTING call by its full name is in the API, with its module or alone."""
    windows = (
        "*.md",
        "metrics/*/*.md",
        "datasets_scripts/*/*.md",
        "models/**/*.md",
        "spaces/*/*.md",
        "benchmarks/*/*.md",
    )
    texts = [path.read_text(encoding="utf-8") for pattern in windows for path in ROOT.glob(pattern)]
    called = {name for text in texts for name in re.findall(r"\bmusic_evals\.\w[\w.]*\w", text)}
    package = importlib.import_module("music_evals")
    called -= {f"music_evals.{name}" for name in (*package.__all__, *package._RENAMED)}  # former names, too
    called -= {"music_evals.cli"}  # the command, which has a page of its own
    lost = {name for name in called if not {name, name.rpartition(".")[0]} & IDENTIFIERS}
    assert called
    assert not lost, f"no page of docs/api has {', '.join(sorted(lost))}"


def test_every_public_name_says_what_it_is() -> None:
    """A name without a docstring, or a constant without a comment at least, would be missing from its page."""
    griffe = pytest.importorskip("griffe", reason="griffe is absent; install it with the extra docs")
    extensions = griffe.load_extensions(DOCS / "hooks" / "docstrings.py")
    package = griffe.load("music_evals", search_paths=[SOURCE.parent], extensions=extensions)
    for name in public_modules():
        module = package[name.partition(".")[2]]
        members = {str(exported): module[str(exported)] for exported in module.exports}
        silent = [exported for exported, member in members.items() if not member.docstring]
        assert not silent, f"{name}: {', '.join(silent)}"


def test_every_checklist_of_contributing_is_on_a_page() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    missing = [heading for heading in headings if f"<!-- insert: section CONTRIBUTING.md {heading} -->" not in text]
    assert headings
    assert not missing


def test_contributing_names_every_room() -> None:
    rooms = {path.parent.name for path in (ROOT / "src" / "music_evals").glob("*/__init__.py")}
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert not {room for room in rooms if f"`{room}`" not in text}


def blocks_of(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


RUN = [page for page in (DOCS / "tour.md", *sorted((DOCS / "tasks").glob("*.md"))) if blocks_of(page, "bash")]
"""Where every `bash` block runs as it stands; other pages show commands for clusters, URLs and own files."""


def test_the_tour_and_every_task_show_commands_that_run() -> None:
    tasks = {page.name for page in (DOCS / "tasks").glob("*.md")}
    assert {"tour.md", *tasks} - {page.name for page in RUN} == {
        "index.md",
        "publishing.md",
    }  # the latter needs a token


def lines_of(page: Path) -> list[str]:
    lines = "\n".join(blocks_of(page, "bash")).replace("\\\n", " ").splitlines()
    return [line for line in lines if line]


def left_to_run(page: Path) -> list[str]:
    """Return the lines of a page without those that stand in the tour of the commands, too, unless others go on there.

    `test_readme.py` runs that tour.
    """
    toured = [shlex.split(line, comments=True) for line in TOUR]
    left = []
    for line in lines_of(page):
        words = shlex.split(line)
        out = words[words.index("--out") + 1] if "--out" in words else ""
        if (
            words not in toured
            or words[1] == "examples"
            or any(f" {out}" in other for other in lines_of(page) if other != line)
        ):
            left.append(line)
    return left


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in RUN if left_to_run(page)], ids=lambda page: page.stem)
def test_commands_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line runs as it stands, in one folder, beside the examples: ours in this process, others in a shell."""
    if page.stem != "tour":  # which fetches them itself
        shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    for line in left_to_run(page):
        words = shlex.split(line)
        if words[0] != "music-evals":
            subprocess.run(["bash", "-ec", line], check=True, capture_output=True)
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert main(words[1:]) == 0, line


# --- how docstrings become Markdown

DOCSTRING = """What a module is for.

Kinds
    One line of it,
    and another.
More kinds
    Of these.

====== =========== =====
Case   `thing`     other
====== =========== =====
a      case that   0
       wraps
b      is full     1
====== =========== =====

>>> thing(1)
`1`

Notes
-----
`thing`, and `os`.
"""


def test_docstrings_become_markdown(tmp_path: Path) -> None:
    """Worked by hand: definitions, tables with lines that go on, examples, names, comments of constants."""
    griffe = pytest.importorskip("griffe", reason="griffe is absent; install it with the extra docs")
    (tmp_path / "toy.py").write_text(
        f'"""{DOCSTRING}"""\n\n__all__ = ["LIMIT", "thing"]\n\nLIMIT = 3  # of things\nHIDDEN = 4  # of none\n\n\n'
        'def thing():\n    """Return `LIMIT` and `nothing`."""\n'
    )
    extensions = griffe.load_extensions(DOCS / "hooks" / "docstrings.py")
    toy = griffe.load("toy", search_paths=[tmp_path], extensions=extensions)
    link = '<autoref optional identifier="toy.{0}"><code>{0}</code></autoref>'
    thing = link.format("thing")
    assert toy.docstring.value.splitlines() == [
        "What a module is for.",
        "",
        "Kinds",
        ":   One line of it,",
        "    and another.",
        "",
        "More kinds",
        ":   Of these.",
        "",
        f"| Case | {thing} | other |",
        "| --- | --- | --- |",
        "| a | case that wraps | 0 |",
        "| b | is full | 1 |",
        "",
        "```pycon",
        ">>> thing(1)",
        "`1`",
        "```",
        "",
        "Notes",
        "-----",
        f"{thing}, and `os`.",
    ]
    assert toy["LIMIT"].docstring.value == "Of things."
    assert toy["HIDDEN"].docstring is None
    assert toy["thing"].docstring.value == f"Return {link.format('LIMIT')} and `nothing`."


# --- the built site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does, where every warning is an error."""
    if built := os.environ.get("MUSIC_EVALS_SITE"):  # by `make docs`, which .ci/run has done before
        return ROOT / built
    pytest.importorskip("mkdocs", reason="mkdocs is absent; install it with the extra docs")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    build = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert build.returncode == 0, build.stdout + build.stderr
    assert "WARNING" not in build.stdout + build.stderr
    return out


LOADS = re.compile(r"<(script|img|iframe|source|audio|video|link)\b([^>]*)>")
ADDRESS = re.compile(r"""\b(?:src|href|srcset|poster)=["']?([^"'\s>]+)""")
LINKED = ("canonical", "next", "prev")


@pytest.mark.slow
def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 100
    for page in pages:
        for kind, attributes in LOADS.findall(page.read_text(encoding="utf-8")):
            if kind == "link" and any(f'rel="{relation}"' in attributes for relation in LINKED):
                continue
            for address in ADDRESS.findall(attributes):
                assert urlsplit(address).scheme in {"", "data"}, f"{page.relative_to(site)}: {kind} {address}"
                assert not address.startswith("//"), f"{page.relative_to(site)}: {kind} {address}"
    for sheet in site.rglob("*.css"):
        found = re.search(r"""(?:url\(|@import )\s*["']?(?:https?:)?//\S+""", sheet.read_text(encoding="utf-8"))
        assert not found, f"{sheet.relative_to(site)}: {found[0] if found else ''}"


@pytest.mark.slow
def test_every_address_within_the_site_leads_somewhere(site: Path) -> None:
    """mkdocs looks at links of Markdown only; here are frames, pictures, and what the hooks wrote, too."""
    texts = {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html") if page.name != "404.html"}
    anchors = {page: set(re.findall(r"""\bid=["']?([^"'\s>]+)""", text)) for page, text in texts.items()}
    for page, text in texts.items():
        if page.parent.name == "reports":
            continue  # made by the library, which has tests of its own
        for _, address in re.findall(r'<(\w+)\b[^>]*?\b(?:href|src)="([^"]*)"', text):
            parts = urlsplit(html.unescape(address))
            if parts.scheme or address.startswith("//"):
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            assert target.exists(), f"{page.relative_to(site)} leads to {address}"
            if parts.fragment and target in anchors and not parts.fragment.startswith("__"):
                assert unquote(parts.fragment) in anchors[target], f"{page.relative_to(site)} leads to {address}"


@pytest.mark.slow
def test_every_public_name_is_described(site: Path) -> None:
    described = inventory(site / "objects.inv")
    for name in ["music_evals", *public_modules()]:
        module = importlib.import_module(name)
        for attribute in getattr(module, "__all__", ()):
            value = getattr(module, attribute)
            home = getattr(value, "__module__", name) if name == "music_evals" else name
            assert f"{home}.{attribute}" in described or attribute == "__version__", f"{name}.{attribute} has no place"


def inventory(path: Path) -> set[str]:
    """Return the names in an inventory of Sphinx: four lines of text, then compressed lines that begin with a name."""
    *_, body = path.read_bytes().split(b"\n", 4)
    return {line.partition(" ")[0] for line in zlib.decompress(body).decode("utf-8").splitlines()}


@pytest.mark.slow
def test_no_markup_is_left_over(site: Path) -> None:
    """What Markdown did not understand would stand there as it was written."""
    for page in site.rglob("*.html"):
        if page.parent.name == "reports":
            continue
        _, _, text = page.read_text(encoding="utf-8").partition("<article")
        text = re.sub(r"<(pre|code|math)\b.*?</\1>", "", text, flags=re.DOTALL)
        for line in html.unescape(re.sub(r"<[^>]+>", "", text)).splitlines():
            found = re.match(r"\s*(?:- |\d+\. (?!.*¶$)|\|.*\||>>> |={3,}|-{3,})", line) or re.search(
                r"\]\(|\$\$|\*\*[A-Za-z]|`", line
            )
            assert not found, f"{page.relative_to(site)}: {line}"
        assert "<!-- insert" not in text


@pytest.mark.slow
def test_formulas_and_catalogue_are_drawn(site: Path) -> None:
    card = (site / "metrics" / "note_f1" / "index.html").read_text(encoding="utf-8")
    assert "<mfrac>" in card
    assert "arithmatex" not in card
    table = (site / "metrics.html").read_text(encoding="utf-8")
    row = re.search(
        r'<tr>\s*<td><a href="metrics/delta_bpm/index.html"><code>delta_bpm</code></a></td>(.*?)</tr>', table, re.DOTALL
    )
    assert row
    cells = re.findall(r"<td>(.*?)</td>", row[1])
    assert cells[1:4] == ["0 to ∞", "lower", "BPM"]


@pytest.mark.slow
def test_the_gallery_shows_real_reports(site: Path) -> None:
    gallery = (site / "gallery.html").read_text(encoding="utf-8")
    shown = set(re.findall(r'<iframe src="reports/(\w+)\.html"', gallery))
    assert shown == {page.stem for page in (site / "reports").glob("*.html")}
    assert "new_melody" in (site / "reports" / "edits.html").read_text(encoding="utf-8")
