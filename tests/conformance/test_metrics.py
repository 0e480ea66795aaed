"""Every folder under `metrics/` obeys the contract of an evaluate module; `tests/metrics/test_modules.py` computes."""

from __future__ import annotations

import ast
import doctest
import io
import math
import re
from pathlib import Path

import pytest
from tests.conformance.rules import ROOT, card_of, code_lines, over, text_of, tree_of
from tests.metrics.families import FOLDERS, NAMES, SCORES, is_drawn, kind_of, variants_of

from music_evals.metrics.catalogue import (
    AUXILIARY,
    CATALOGUE,
    HIDDEN_CELL_SCORES,
    INPAINTING_METRICS,
    MELODY_SCORES,
    PRESERVATION_METRICS,
    RELEASE_SCORES,
    SHOWN_AUXILIARY,
    STYLE_SCORES,
)

FILES = {"{name}.py", "README.md", "app.py", "requirements.txt"}
MAX_CODE_LINES = 40
SECTIONS = [
    "Definition", "Inputs", "Options", "Output", "Range and direction", "Undefined", "Variants", "Example",
    "Limitations", "Citation", "Licence",
]  # fmt: skip
CARD_KEYS = {
    "title", "emoji", "colorFrom", "colorTo", "sdk", "sdk_version", "app_file", "pinned", "license", "tags",
    "description",
}  # fmt: skip
OPTIONS = {
    "study": ["samples", "listening", "epsilon"],
    "rolls": ["average"],
    "lyrics": ["rhyme", "normalise", "strict"],
    "tags": ["encoder", "aggregation", "empty"],
    "themes": ["encoder"],
    "targets": ["store"],
    "captions": ["encoder"],
    "nearness": ["encoder"],
    "edits": ["companions", "backends", "store", "policy", "options", "failures"],
}
"""Kind of module -> options of its own that its cards tell of."""
of_each_metric = over(FOLDERS, lambda folder: f"metrics/{folder.name}")
EDITS = [name for name in NAMES if kind_of(name) == "edits"]
of_each_edit_metric = over(EDITS, lambda name: f"metrics/{name}")


def section(text: str, heading: str) -> str:
    match = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert match, f"the card has no section {heading!r}"
    return match[1].strip()


def script(folder: Path) -> ast.Module:
    return tree_of(folder / f"{folder.name}.py")


@of_each_metric
def test_files(folder: Path) -> None:
    expected = {name.format(name=folder.name) for name in FILES}
    found = {path.name for path in folder.iterdir()} - {"__pycache__"}
    assert found == expected


def test_repository_folders_hold_no_package() -> None:
    for folder in ("metrics", "datasets_scripts", "models", "spaces"):
        assert not list((ROOT / folder).rglob("__init__.py"))


@of_each_metric
def test_the_script_is_thin(folder: Path) -> None:
    lines = code_lines(folder / f"{folder.name}.py")
    assert lines <= MAX_CODE_LINES, f"{lines} lines of code; the logic belongs into src/music_evals"


@of_each_metric
def test_imports_suit_the_parser_of_evaluate(folder: Path) -> None:
    """evaluate reads imports line by line: one a line, at the top, from our package only."""
    imports = [node for node in ast.walk(script(folder)) if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in imports:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        assert len(names) == 1, f"line {node.lineno}: one import a line"
        assert node.lineno == node.end_lineno, f"line {node.lineno}: an import of one line"
        assert names[0].split(".")[0] == "music_evals", f"line {node.lineno}: {names[0]} belongs into the workshop"
        assert node.col_offset == 0, f"line {node.lineno}: an import that is indented is not seen"


@of_each_metric
def test_the_class_is_named_after_the_folder(folder: Path) -> None:
    from evaluate.naming import camelcase_to_snakecase

    classes = [node.name for node in script(folder).body if isinstance(node, ast.ClassDef)]
    assert [camelcase_to_snakecase(name) for name in classes] == [folder.name]


@of_each_metric
def test_app_is_thin_over_the_shared_page(folder: Path) -> None:
    assert code_lines(folder / "app.py") <= 6
    calls = [ast.unparse(node) for node in ast.walk(tree_of(folder / "app.py")) if isinstance(node, ast.Call)]
    assert {f"build_metric_page('{folder.name}', __file__)", "serve(build_demo, __file__)"} <= set(calls)


@of_each_metric
def test_requirements_name_the_package(folder: Path) -> None:
    lines = [line for line in text_of(folder / "requirements.txt").splitlines() if line and line[0] != "#"]
    assert any(re.match(r"music[_-]evals(\[[a-z,]+\])?\b", line) for line in lines)
    assert not any(re.match(r"(torch|tensorflow|jax)\b", line) for line in lines), "a metric page needs no such thing"
    assert not any(re.search(r"\[[^]]*\bmodels\b", line) for line in lines), "the extra `models` brings torch"


@of_each_metric
def test_card_yaml(folder: Path) -> None:
    head, _ = card_of(folder)
    assert set(head) >= CARD_KEYS
    assert (head["sdk"], head["app_file"], head["pinned"]) == ("gradio", "app.py", False)
    assert re.fullmatch(r"\d+\.\d+\.\d+", str(head["sdk_version"]))
    assert head["license"] == "apache-2.0"
    assert {"evaluate", "metric"} <= set(head["tags"])
    assert head["title"].lower().replace(" ", "_").replace("-", "_") == folder.name
    assert 30 <= len(head["description"].strip()) <= 300


@of_each_metric
def test_card_sections(folder: Path) -> None:
    _, text = card_of(folder)
    wanted = [*SECTIONS[:8], "Validity", *SECTIONS[8:]] if kind_of(folder.name) in {"edits", "targets"} else SECTIONS
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == wanted
    assert all(len(section(text, heading)) > 40 for heading in wanted)
    assert "Apache-2.0" in section(text, "Licence")
    assert "```bibtex\n@" in section(text, "Citation")
    assert "default" in section(text, "Variants") or section(text, "Variants").startswith("None.")


@of_each_metric
def test_card_tells_range_and_direction(folder: Path) -> None:
    told = section(card_of(folder)[1], "Range and direction")
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \|$", told, re.MULTILINE)
    assert [name for name, _, _ in rows] == SCORES[folder.name]
    for name, span, direction in rows:
        check_scale(name, span, direction)


@of_each_metric
def test_the_catalogue_agrees_with_the_card(folder: Path) -> None:
    """Every score of a module stands in the catalogue, of one task, with the card's title and paper."""
    head, text = card_of(folder)
    found = [CATALOGUE[name] for name in SCORES[folder.name]]
    *_, paper = sorted({metric.paper for metric in found})  # "" is our own
    assert {metric.paper for metric in found} <= {"", paper}
    assert not paper or f"{{{paper}," in section(text, "Citation") or kind_of(folder.name) in {"words", "themes"}
    assert len({metric.task for metric in found}) == 1
    if SCORES[folder.name] == [folder.name] or folder.name in CATALOGUE:
        assert CATALOGUE[folder.name].title.lower().replace("-", " ") == head["title"].lower().replace("-", " ")


def test_every_published_score_has_a_module() -> None:
    """What is not an auxiliary metric or a part of the descriptions is returned by a folder of its own name."""
    returned = {name for names in SCORES.values() for name in names}
    assert {*SCORES, *INPAINTING_METRICS, *PRESERVATION_METRICS, *SHOWN_AUXILIARY} == set(NAMES)
    apart = {*AUXILIARY, "repeated_note_rate"} - returned
    parts = {name for name, metric in CATALOGUE.items() if metric.task == "descriptions"} - {"tag_semantic_similarity"}
    runs_alone = {
        *HIDDEN_CELL_SCORES,
        *STYLE_SCORES,
        *MELODY_SCORES,
        *RELEASE_SCORES,
        "lyric_structure_gated",
    }  # of models, corpora and one release, not of items of any variant: the task and the facets' modules have them
    assert returned == set(CATALOGUE) - apart - parts - runs_alone


def check_scale(name: str, span: str, direction: str) -> None:
    """Compare one row of a table with what the library knows of the score."""
    assert name in CATALOGUE, f"{name}: it is missing in metrics/catalogue.py"
    low, high = re.match(r"(-?[\d.]+) to ([\d.]+|∞)", span).groups()  # type: ignore[union-attr]
    info = CATALOGUE[name]
    assert float(low) == pytest.approx(info.low, abs=5e-4)
    assert (math.inf if high == "∞" else float(high)) == pytest.approx(info.high, abs=5e-4)
    words = {"none": "compared with the reference's own"}
    assert direction == words.get(info.direction, f"{info.direction} is better")


@of_each_metric
def test_card_names_every_key_and_option(folder: Path) -> None:
    output, options = section(card_of(folder)[1], "Output"), section(card_of(folder)[1], "Options")
    for name in SCORES[folder.name]:
        prefix = name if SCORES[folder.name] == [folder.name] else "<name>"
        keys = [prefix, f"{prefix}_ci", f"{prefix}_n", f"{prefix}_n_defined", f"{prefix}_n_clusters"]
        keys += [f"{prefix}_null"] if CATALOGUE[name].kind == "set" else []
        keys += [f"{prefix}_reference"] if CATALOGUE[name].direction == "none" else []
        assert all(f"`{key}`" in output for key in keys)
    assert ("| `n_resamples` |" in options) == ("| `seed` |" in options) == is_drawn(folder.name)
    kind = kind_of(folder.name)
    wanted = ["confidence", "per_item", *OPTIONS.get(kind, [])]
    wanted += ["groups"] * (kind != "study") + ["variant"] * bool(variants_of(folder.name))
    assert all(f"| `{option}` |" in options for option in wanted)


@of_each_edit_metric
def test_the_card_tells_its_validity(name: str) -> None:
    """Benchmarks write between the marks: of timbre and swing their own, of renders, then of real recordings."""
    text = section(card_of(ROOT / "metrics" / name)[1], "Validity")
    places = re.findall(r"^<!-- (\w+) -->\n(.+?)^<!-- /(\w+) -->$", text, re.MULTILINE | re.DOTALL)
    own = [(mark, mark) for mark in [{"timbre_similarity": "timbre", "swing_ratio": "swing"}.get(name)] if mark]
    assert [(start, end) for start, _, end in places] == [*own, ("validity", "validity"), ("real", "real")]
    measured = places[-1][1] != "\nNot measured yet.\n"
    assert all((f"| `{score}` | test |" in places[-1][1]) == measured for score in SCORES[name])


@over([score for score in EDITS if score in CATALOGUE and not math.isnan(CATALOGUE[score].chance)])
def test_the_card_tells_the_chance_of_the_catalogue(name: str) -> None:
    """It is measured, and rounded to the digits that the card gives."""
    text = " ".join(section(card_of(ROOT / "metrics" / name)[1], "Limitations").split())
    told = re.findall(r"[Uu]nrelated[^.|]*? about (\d+\.\d+)", text)
    assert told, "how does unrelated music score?"
    assert all(float(number) == CATALOGUE[name].chance for number in told)


@of_each_edit_metric
def test_the_auxiliary_metrics_of_a_card_are_inserted_by_the_site(name: str) -> None:
    """A card that held the table itself would have to change with each metric that is added."""
    options = section(card_of(ROOT / "metrics" / name)[1], "Options")
    facets = dict.fromkeys(CATALOGUE[score].facet for score in SCORES[name])
    assert f"<!-- insert: metrics AUXILIARY {' '.join(facets)} -->" in options
    assert not [auxiliary for auxiliary in AUXILIARY if f"| `{auxiliary}` |" in options]


def test_a_score_without_a_card_is_described_by_the_catalogue() -> None:
    """The site puts the description into tables; a card's own stands in its head."""
    assert {name for name, metric in AUXILIARY.items() if not metric.description} == AUXILIARY.keys() & set(NAMES)


@pytest.mark.slow
@of_each_metric
def test_card_example_runs(folder: Path, in_root: Path) -> None:
    """Every Python block of the card runs; those of its example print numbers."""
    _, text = card_of(folder)
    blocks = python_blocks(section(text, "Example"))
    assert blocks, "the card needs an example with its printed numbers"
    assert blocks == [block for block in python_blocks(text) if ">>>" in block], "what runs belongs into the example"
    name = f"{folder.name}/README.md"
    names: dict[str, object] = {}  # a later block goes on where an earlier one ended
    for block in blocks:
        example = doctest.DocTestParser().get_doctest(block, names, name, name, 0)
        printed = [part for part in example.examples if part.want]
        assert printed, "the example must print a number"
        runner, said = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE), io.StringIO()
        failed = runner.run(example, out=said.write, clear_globs=False).failed
        assert not failed, said.getvalue()
        names = example.globs


def python_blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
