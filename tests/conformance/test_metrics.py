"""Every folder under `metrics/` obeys the contract of an evaluate module."""

from __future__ import annotations

import ast
import contextlib
import doctest
import functools
import io
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conformance.rules import ROOT, card_of, code_lines, over, subfolders, text_of, tree_of

from music_evals import hf
from music_evals.annotations import Score
from music_evals.errors import InvalidInputError
from music_evals.metrics.catalogue import (
    AUXILIARY,
    CATALOGUE,
    CELL_SCORES,
    EDITING_SCORES,
    EFFORT_RATIOS,
    HIDDEN_CELL_SCORES,
    INPAINTING_METRICS,
    LYRIC_SCORES,
    MELODY_SCORES,
    PRESERVATION_METRICS,
    RELEASE_SCORES,
    SHOWN_AUXILIARY,
    STYLE_SCORES,
)
from music_evals.pipelines import lyric_content, lyrics
from music_evals.pipelines.inpainting import evaluate_inpainting, evaluate_nll
from music_evals.pipelines.preservation import FACETS, evaluate_preservation
from music_evals.pipelines.style_transfer.cell_prediction import evaluate_cells
from music_evals.pipelines.tags import evaluate_tags
from music_evals.symbolic.notes import make_notes

FOLDERS = subfolders("metrics")
NAMES = [path.name for path in FOLDERS]
of_each_metric = over(FOLDERS, lambda folder: f"metrics/{folder.name}")
PUBLISHED = {
    "position_score", "pitch_accuracy", "rhythm_accuracy", "note_f1", "silence_divergence", "pitch_class_divergence",
    "groove_divergence", "inpainting_nll", "musical_inpainting",
    "consonance_pitch_accuracy", "interval_divergence", "self_replication_rate",
    "circle_of_fifths_distance", "major_minor_score", "chroma_dtw_similarity", "delta_bpm", "beat_f_measure",
    "information_gain", "segment_ari", "boundary_f_measure", "voicing_recall", "motif_jaccard", "motif_recall",
    "harmony_preservation", "rhythm_preservation", "structure_preservation", "melody_preservation",
    "music_context_preservation", "lyric_structure", "lyric_diversity", "lyric_theme_similarity",
    "lyric_wordlikeness", "tag_semantic_similarity", "piano_roll_error_rate",
    "editing_effort_ratio", "editing_test",
    *SHOWN_AUXILIARY,
}  # fmt: skip

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
# What each module returns; a module of several scores names them.
SCORES = (
    {name: [name] for name in NAMES}
    | {"musical_inpainting": list(INPAINTING_METRICS), "music_context_preservation": list(PRESERVATION_METRICS)}
    | {f"{facet}_preservation": list(names) for facet, names in FACETS.items()}
    | {"lyric_structure": [*LYRIC_SCORES, "lyric_wordlikeness"], "piano_roll_error_rate": list(CELL_SCORES)}
    | {"editing_effort_ratio": list(EFFORT_RATIOS), "editing_test": list(EDITING_SCORES)}
)
# What a result holds beside its scores.
EXTRAS = {
    "tag_semantic_similarity": ["tag_semantic_similarity_std", "encoder"],
    "lyric_diversity": [
        "lyric_diversity_range", "lyric_diversity_in_range", "lyric_line_repetition", "lyric_line_repetition_reference",
    ],
    "lyric_theme_similarity": ["lyric_theme_similarity_other", "encoder"],
    "lyric_wordlikeness": [
        "lyric_wordlikeness_reference", "lyric_wordlikeness_range", "lyric_wordlikeness_in_range", "lyric_word_share",
        "lyric_word_share_reference",
    ],
}  # fmt: skip
# What keeps a module from weights or from loading a dictionary.
LIGHT = {
    "lyric_structure": {"rhyme": "char"},
    "tag_semantic_similarity": {"encoder": "char-ngrams"},
    "lyric_theme_similarity": {"encoder": "char-ngrams"},
}
# The modules that compare recordings, or scores, before and after an edit; the others judge tokens.
EDITS = {name for name in NAMES if set(SCORES[name]) <= {*PRESERVATION_METRICS, *AUXILIARY}}
# The modules that judge texts.
OF_LYRICS = {"lyric_diversity", "lyric_theme_similarity", "lyric_wordlikeness"}
OF_TEXTS = {"lyric_structure", "tag_semantic_similarity", *OF_LYRICS}
# The modules that judge cells of piano rolls.
OF_ROLLS = {"piano_roll_error_rate"}
# The modules that judge a whole study from its tables; `tests/test_hf_studies.py` holds what they return to account.
OF_STUDIES = {"editing_effort_ratio", "editing_test"}
# Modules of one formula; the others have the variants of `compute`.
ONE_FORMULA = {
    "inpainting_nll", "tag_semantic_similarity", *OF_LYRICS, *OF_ROLLS, *OF_STUDIES,
}  # fmt: skip


def resamples(name: str, n: int) -> dict[str, int]:
    """Return the option of the modules that draw resamples: those with a divergence."""
    return {"n_resamples": n} if any(CATALOGUE[score].kind == "set" for score in SCORES[name]) else {}


def few(name: str) -> int:
    """Return a number of items: a whole piece takes longest, and four can differ."""
    return 4 if name in EDITS else 12


of_each_edit_metric = over(sorted(EDITS), lambda name: f"metrics/{name}")
# Metrics whose module takes pairs; a study is one item.
of_each_module = over([name for name in NAMES if name not in OF_STUDIES], lambda name: f"metrics/{name}")


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """A function that loads a module by its name, and perhaps a config, as a user does from the root; each once."""
    import evaluate

    cache = tmp_path_factory.mktemp("evaluate")

    @functools.cache
    def load_once(name: str, *config: str) -> Any:
        with contextlib.chdir(ROOT):
            return evaluate.load(f"./metrics/{name}", *config, cache_dir=str(cache))

    return load_once


def seeded() -> np.random.Generator:
    """Randomness that is the same for each metric."""
    return np.random.default_rng(20_220_711)


def section(text: str, heading: str) -> str:
    match = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert match, f"the card has no section {heading!r}"
    return match[1].strip()


def script(folder: Path) -> ast.Module:
    return tree_of(folder / f"{folder.name}.py")


def contexts_and_middles(rng: np.random.Generator, n: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Random music: one onset about every third step, some rests, predictions that keep half of the middle."""
    tokens = np.where(rng.random((n, 384)) < 0.3, rng.integers(55, 80, (n, 384)), 128)
    tokens[rng.random((n, 384)) < 0.1] = 129
    tokens[:, 144] = 60
    middles = np.where(rng.random((n, 96)) < 0.5, tokens[:, 144:240], rng.integers(55, 130, (n, 96)))
    return tokens.astype(np.uint8), middles.astype(np.uint8)


def piece(rng: np.random.Generator, n_bars: int = 8) -> Score:
    """Bars of 2 s at 120 quarters a minute: triads below a tune of quarters and rests, in two sections of their own."""
    rows = []
    for bar in range(n_bars):
        low = 36 if bar < n_bars // 2 else 60
        root = low + int(rng.choice([0, 5, 7]))
        rows += [(1920 * bar, 1920, root + step, 0) for step in (0, 4, 7)]
        starts = [beat for beat in range(4) if rng.random() < 0.8]
        rows += [(1920 * bar + 480 * beat, 480, low + 24 + int(rng.integers(12)), 1) for beat in starts]
    onsets, durations, pitches, voices = zip(*rows, strict=True)
    return Score(make_notes(onsets, durations, pitches, voice=voices), 480, voices=("Chords", "Melody"))


def edited(score: Score, rng: np.random.Generator) -> Score:
    """Move a third of the notes by a tone; nothing else, so that even the official code can compare."""
    notes = score.notes.copy()
    notes["pitch"] += np.where(rng.random(len(notes)) < 0.3, 2, 0).astype(np.uint8)
    return Score(make_notes(*(notes[name] for name in notes.dtype.names)), 480, voices=score.voices)


def song(rng: np.random.Generator) -> tuple[str, str]:
    """Lyrics of random characters in sections, and a pattern that is theirs but for some lines."""
    words, pattern = [], []
    for label in rng.choice(["verse", "chorus", "bridge"], size=3):
        words.append(f"({label})")
        pattern.append(f"({label})")
        for _ in range(4):
            length = int(rng.integers(4, 8))
            words.append("".join(rng.choice(list("春眠不觉晓处闻啼鸟夜来风雨声花落知多少"), size=length)))
            pattern.append("c" * (length - 1 + int(rng.integers(0, 2))) + str(rng.choice(["c", "R"])))
    return "\n".join(words), "\n".join(pattern)


def tags(rng: np.random.Generator) -> list[str]:
    return [
        str(tag)
        for tag in rng.choice(["抒情", "慢速", "快速", "钢琴", "钢琴伴奏", "流行", "民谣"], size=3, replace=False)
    ]


def predicted_roll(rng: np.random.Generator, n_steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of cells, and a roll in which about one of ten sounds and few are far from what was predicted."""
    truth = rng.random((n_steps, 84)) < 0.1
    return np.clip(truth + rng.normal(0, 0.3, truth.shape), 0.01, 0.99), truth


def inputs_for(module: Any, rng: np.random.Generator, n: int = 12) -> dict[str, Any]:
    if module.name == "lyric_structure":
        songs = [song(rng) for _ in range(n)]
        return {"predictions": [words for words, _ in songs], "references": [pattern for _, pattern in songs]}
    if module.name in OF_LYRICS:
        found = [song(rng)[0] for _ in range(2 * n)]
        return {"predictions": found[:n], "references": found[n:]}
    if module.name == "tag_semantic_similarity":
        return {"predictions": [tags(rng) for _ in range(n)], "references": [tags(rng) for _ in range(n)]}
    if module.name in OF_ROLLS:
        rolls = [predicted_roll(rng, int(rng.integers(8, 40))) for _ in range(n)]
        return {"predictions": [given for given, _ in rolls], "references": [truth for _, truth in rolls]}
    if module.name in EDITS:
        references = [piece(rng) for _ in range(n)]
        return {"predictions": [edited(score, rng) for score in references], "references": references}
    contexts, middles = contexts_and_middles(rng, n)
    if "references" in module.features:
        return {"predictions": list(middles), "references": list(contexts)}
    return {"predictions": np.log(rng.uniform(0.01, 1, (n, 96)))}


def library_result(module: Any, inputs: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Return the same from the workshop, without evaluate."""
    if module.name == "inpainting_nll":
        return evaluate_nll(inputs["predictions"], **options)
    if module.name in OF_ROLLS:
        return evaluate_cells(inputs["references"], inputs["predictions"], **options)
    if module.name in OF_TEXTS:
        evaluate_texts = {
            "lyric_structure": lyrics.evaluate_lyrics,
            "lyric_diversity": lyric_content.evaluate_diversity,
            "lyric_wordlikeness": lyric_content.evaluate_wordlikeness,
            "lyric_theme_similarity": lyric_content.evaluate_themes,
            "tag_semantic_similarity": evaluate_tags,
        }[module.name]
        return evaluate_texts(inputs["references"], inputs["predictions"], **options)
    names = SCORES[module.name]
    if module.name in EDITS:
        return evaluate_preservation(inputs["references"], inputs["predictions"], metrics=names, **options)
    return evaluate_inpainting(
        np.array(inputs["references"]), np.array(inputs["predictions"]), metrics=names, **options
    )


def same(first: Any, second: Any) -> bool:
    """Tell whether two results are equal; NaN is equal to NaN here."""
    return json.dumps(first) == json.dumps(second)


def test_the_published_modules_are_there() -> None:
    assert set(NAMES) >= PUBLISHED


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
    wanted = SECTIONS if folder.name not in EDITS else [*SECTIONS[:8], "Validity", *SECTIONS[8:]]
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
    assert not paper or f"{{{paper}," in section(text, "Citation") or folder.name in OF_LYRICS
    assert len({metric.task for metric in found}) == 1
    if SCORES[folder.name] == [folder.name] or folder.name in CATALOGUE:
        assert CATALOGUE[folder.name].title.lower().replace("-", " ") == head["title"].lower().replace("-", " ")


def test_every_published_score_has_a_module() -> None:
    """What is not an auxiliary metric or a part of the descriptions is returned by a folder of its own name."""
    returned = {name for names in SCORES.values() for name in names}
    assert returned >= set(SHOWN_AUXILIARY)
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
    drawn = any(CATALOGUE[name].kind == "set" for name in SCORES[folder.name])
    assert ("| `n_resamples` |" in options) == ("| `seed` |" in options) == drawn  # means need no resamples
    wanted = ["samples", "listening", "epsilon"] if folder.name in OF_STUDIES else ["groups"]
    wanted += ["confidence", "per_item"]
    wanted += ["variant"] if folder.name not in ONE_FORMULA else []
    wanted += ["average"] if folder.name in OF_ROLLS else []
    wanted += ["rhyme", "normalise", "strict"] if folder.name == "lyric_structure" else []
    wanted += ["encoder", "aggregation", "empty"] if folder.name == "tag_semantic_similarity" else []
    wanted += ["encoder"] if folder.name == "lyric_theme_similarity" else []
    wanted += ["companions", "backends", "store", "policy", "options", "failures"] if folder.name in EDITS else []
    assert all(f"| `{option}` |" in options for option in wanted)


@of_each_edit_metric
def test_the_card_tells_its_validity(name: str) -> None:
    """A benchmark writes between the marks: of renders, then of real recordings."""
    text = section(card_of(ROOT / "metrics" / name)[1], "Validity")
    places = re.findall(r"^<!-- (\w+) -->\n(.+?)^<!-- /(\w+) -->$", text, re.MULTILINE | re.DOTALL)
    assert [(start, end) for start, _, end in places] == [("validity", "validity"), ("real", "real")]
    measured = places[1][1] != "\nNot measured yet.\n"
    assert all((f"| `{score}` | test |" in places[1][1]) == measured for score in SCORES[name])


@over(sorted(score for score in EDITS & set(CATALOGUE) if not math.isnan(CATALOGUE[score].chance)))
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


@of_each_module
def test_what_the_module_says_of_itself(metric: str, load: Callable[..., Any]) -> None:
    module = load(metric)
    assert module.name == metric
    assert module.module_type == "metric"
    assert len(module.description) > 30
    own = "wang2024muchin" if module.name in OF_LYRICS else "vishe2025musecpbench"  # where what is our own comes from
    assert f"{{{CATALOGUE[SCORES[module.name][0]].paper or own}," in module.citation
    assert module.info.license == "Apache-2.0"
    assert "predictions" in module.inputs_description
    assert isinstance(
        module,
        hf.SymbolicMetric | hf.LikelihoodMetric | hf.AudioMetric | hf.LyricsMetric | hf.TagsMetric | hf.TextsMetric,
    )


@of_each_module
def test_result_keys_types_and_range(metric: str, load: Callable[..., Any]) -> None:
    module = load(metric)
    rng = seeded()
    n = few(module.name)
    inputs = inputs_for(module, rng, n)
    result = module.compute(**inputs, **resamples(module.name, 50), **LIGHT.get(module.name, {}))
    expected: list[str] = []
    for name in SCORES[module.name]:
        expected += [name, f"{name}_ci", f"{name}_n", f"{name}_n_defined", f"{name}_n_clusters"]
        expected += [f"{name}_null"] if CATALOGUE[name].kind == "set" else []
        expected += [f"{name}_reference"] if CATALOGUE[name].direction == "none" else []
        assert type(result[name]) is float
        assert CATALOGUE[name].low <= result[name] <= CATALOGUE[name].high
        low, high = result[f"{name}_ci"]
        assert {type(low), type(high)} == {float}
        assert low <= high or (math.isnan(low) and math.isnan(high))  # all items alike
        assert (type(result[f"{name}_n"]), result[f"{name}_n"]) == (int, n)
        assert 0 < result[f"{name}_n_defined"] <= n
        assert 0 < result[f"{name}_n_clusters"] <= n + 1e-9
    assert list(result) == expected + EXTRAS.get(module.name, [])
    json.dumps({key: value for key, value in result.items() if not key.endswith("_ci")}, allow_nan=False)


@pytest.mark.slow
@of_each_module
def test_per_item_is_one_dict_an_item(metric: str, load: Callable[..., Any]) -> None:
    module = load(metric)
    rng = seeded()
    options = {**resamples(module.name, 0), **LIGHT.get(module.name, {})}
    options |= {"average": "macro"} if module.name in OF_ROLLS else {}  # by default over cells, and not over items
    result = module.compute(**inputs_for(module, rng, few(module.name)), **options, per_item=True)
    rows = result["per_item"]
    assert len(rows) == few(module.name)
    names = SCORES[module.name] if module.name in EDITS | OF_TEXTS | OF_ROLLS else list(rows[0])
    assert {type(row[name]) for row in rows for name in names} == {float}
    for name in SCORES[module.name]:
        if CATALOGUE[name].kind == "item":
            defined = [row[name] for row in rows if not math.isnan(row[name])]
            assert result[name] == pytest.approx(math.fsum(defined) / len(defined))
            assert result[f"{name}_n_defined"] == len(defined)


@pytest.mark.slow
@of_each_module
def test_equal_to_the_library(metric: str, load: Callable[..., Any]) -> None:
    """The folder and the workshop give the same numbers, options included."""
    module = load(metric)
    rng = seeded()
    n = 3 if module.name in EDITS else 12
    inputs = inputs_for(module, rng, n)
    options: list[dict[str, Any]] = [
        {},
        {"groups": [f"song {i // 2}" for i in range(n)], "confidence": 0.8, **resamples(module.name, 60)},
    ]
    if module.name == "tag_semantic_similarity":
        options += [{"aggregation": "f1"}, {"normalize_by_self": True}]
    elif module.name in OF_ROLLS:
        options += [{"average": "macro"}]
    elif module.name in ONE_FORMULA & OF_TEXTS:
        options += [{"n": 3}] if module.name == "lyric_diversity" else []
    elif "references" in module.features:
        options[1]["variant"] = "official"
        options += [{"variant": "paper", **resamples(module.name, 20)}]
    for chosen in [{**LIGHT.get(module.name, {}), **given} for given in options]:
        assert same(module.compute(**inputs, **chosen), library_result(module, inputs, **chosen))


@pytest.mark.slow
@of_each_module
def test_added_one_by_one_is_the_same(metric: str, load: Callable[..., Any]) -> None:
    module = load(metric)
    rng = seeded()
    inputs, options = inputs_for(module, rng, 3), {**resamples(module.name, 20), **LIGHT.get(module.name, {})}
    whole = module.compute(**inputs, **options)
    for i, prediction in enumerate(inputs["predictions"]):
        reference = {"reference": inputs["references"][i]} if "references" in inputs else {}
        module.add(prediction=prediction, **reference)
    assert same(module.compute(**options), whole)


@pytest.mark.slow
@of_each_module
def test_perfect_predictions(metric: str, load: Callable[..., Any]) -> None:
    module = load(metric)
    rng = seeded()
    contexts, _ = contexts_and_middles(rng)
    if module.name == "lyric_structure":
        poem, pattern = "(verse)\n床前明月光\n疑是地上霜\n举头望明月\n低头思故乡", "(verse)\nccccR\nccccR\nccccc\nccccR"
        result = module.compute(predictions=[poem] * 3, references=[pattern] * 3, rhyme="char")
        assert result[module.name] == pytest.approx(110, abs=0.1)  # the official code divides by a little too much
        return
    if module.name in OF_LYRICS:
        poems = ["(verse)\n春眠不觉晓\n夜来风雨声", "(verse)\n床前明月光\n疑是地上霜"]
        result = module.compute(predictions=poems, references=poems, **LIGHT.get(module.name, {}))
        if module.name == "lyric_diversity":
            assert (result[module.name], result[f"{module.name}_in_range"]) == (1.0, 1.0)
        elif module.name == "lyric_wordlikeness":
            assert result[module.name] == result[f"{module.name}_reference"] == 0.0
        else:  # headers and commas aside, the lyrics are the theme
            assert result[module.name] > 0.5 > result[f"{module.name}_other"]
        return
    if module.name == "tag_semantic_similarity":
        result = module.compute(predictions=[["抒情"]] * 3, references=[["抒情"]] * 3, encoder="char-ngrams")
        assert result[module.name] == pytest.approx(1.0, abs=1e-6)
        return
    if module.name in OF_ROLLS:
        rolls = [predicted_roll(rng, 20)[1] for _ in range(3)]
        result = module.compute(predictions=rolls, references=rolls)
    elif module.name in EDITS:
        pieces = [piece(rng) for _ in range(3)]
        result = module.compute(predictions=pieces, references=pieces, **resamples(module.name, 20))
    elif "references" in module.features:
        result = module.compute(predictions=contexts[:, 144:240], references=contexts, **resamples(module.name, 20))
    else:
        result = module.compute(predictions=np.zeros((3, 96)), **resamples(module.name, 20))
    for name in SCORES[module.name]:
        assert result[name] == (1.0 if CATALOGUE[name].direction == "higher" else 0.0)


@pytest.mark.slow
@of_each_module
def test_unknown_options_and_variants_are_refused(metric: str, load: Callable[..., Any]) -> None:
    module = load(metric)
    rng = seeded()
    inputs = inputs_for(module, rng, 2)
    with pytest.raises(TypeError, match="no_such_option"):
        module.compute(**inputs, no_such_option=1)
    if module.name == "tag_semantic_similarity":
        with pytest.raises(LookupError, match="did you mean best_match"):
            module.compute(**inputs, aggregation="best match")
    elif module.name in OF_ROLLS:
        with pytest.raises(LookupError, match="did you mean micro"):
            module.compute(**inputs, average="micr")
    elif module.name in ONE_FORMULA & OF_TEXTS:
        with pytest.raises(TypeError, match="variant"):
            module.compute(**inputs, variant="official")
    elif "references" in module.features:
        wrong, right = ("oficial", "official") if module.name == "lyric_structure" else ("correct", "corrected")
        with pytest.raises(LookupError, match=f"did you mean {right}"):
            module.compute(**inputs, variant=wrong, **LIGHT.get(module.name, {}))
    assert module.compute(**inputs, **resamples(module.name, 20), **LIGHT.get(module.name, {}))


@pytest.mark.slow
@of_each_module
def test_a_config_name_is_a_variant(name: str, load: Callable[..., Any]) -> None:
    """What is loaded as official computes that."""
    plain, options = load(name), {**resamples(name, 20), **LIGHT.get(name, {})}
    inputs = inputs_for(plain, seeded(), 2)
    default = plain.compute(**inputs, **options)
    assert same(load(name, "default").compute(**inputs, **options), default)
    if name not in ONE_FORMULA:
        expected = plain.compute(**inputs, **options, variant="official")
        assert same(load(name, "official").compute(**inputs, **options), expected)


@over(["note_f1", "motif_recall", "lyric_structure"], lambda name: f"metrics/{name}")
def test_another_word_than_the_config_is_refused(name: str, load: Callable[..., Any]) -> None:
    """The same one is not; of each class of modules with variants one."""
    plain, options = load(name), {**resamples(name, 20), **LIGHT.get(name, {})}
    inputs = inputs_for(plain, seeded(), 2)
    for variant in ("corrected", "official", "paper"):
        chosen = load(name, variant)
        expected = plain.compute(**inputs, **options, variant=variant)
        assert same(chosen.compute(**inputs, **options, variant=variant), expected)
        with pytest.raises(ValueError, match=f"contradicts the config '{variant}'"):
            chosen.compute(**inputs, **options, variant="paper" if variant == "official" else "official")
        assert same(chosen.compute(**inputs, **options), expected)


@over(NAMES, lambda name: f"metrics/{name}")
def test_unknown_config_names_are_refused(name: str, load: Callable[..., Any]) -> None:
    def refused(config: str) -> str:
        with pytest.raises(LookupError) as caught:
            load(name, config)
        return str(caught.value)

    if name in ONE_FORMULA:
        assert "no variants" in refused("official")
    else:
        assert "did you mean official?" in refused("oficial")
    assert "unknown config 'musib'" in refused("musib")


def test_modules_combine(load: Callable[..., Any], rng: np.random.Generator) -> None:
    """All modules of one kind go through `evaluate.combine`, and keep their numbers."""
    import evaluate

    contexts, middles = contexts_and_middles(rng)
    apart = {"musical_inpainting", "inpainting_nll"} | EDITS | OF_TEXTS | OF_ROLLS | OF_STUDIES
    names = [name for name in NAMES if name not in apart]
    options = {"groups": np.arange(12) // 4}
    combined = evaluate.combine([load(name) for name in names])
    result = combined.compute(predictions=middles, references=contexts, **options)
    whole = load("musical_inpainting").compute(predictions=middles, references=contexts, **options)
    assert all(same(result[key], value) for key, value in whole.items())
    combined.add_batch(predictions=middles[:5], references=contexts[:5])
    for middle, context in zip(middles[5:], contexts[5:], strict=True):
        combined.add(middle, context)
    assert same(combined.compute(**options), result)


def test_options_of_divergences_are_refused_elsewhere(load: Callable[..., Any], rng: np.random.Generator) -> None:
    """A score that draws nothing and has no logarithm does not take these options and then ignore them."""
    contexts, middles = contexts_and_middles(rng)
    inputs = {"predictions": middles, "references": contexts}
    for name in (name for name in NAMES if name not in EDITS | OF_TEXTS | OF_ROLLS | OF_STUDIES | {"inpainting_nll"}):
        module = load(name)
        for option, value in (("n_resamples", 20), ("seed", 1), ("base", "bits")):
            if resamples(name, 20):
                assert module.compute(**inputs, **{"n_resamples": 20, option: value})
            else:
                with pytest.raises(InvalidInputError, match=f"`{option}` can be given for divergences only"):
                    module.compute(**inputs, **{option: value})


def test_modules_of_edits_combine(load: Callable[..., Any], rng: np.random.Generator) -> None:
    """The eleven metrics, one by one, are what the four facets and the whole give in one pass."""
    import evaluate

    pieces = [piece(rng) for _ in range(2)]
    inputs = {"references": pieces, "predictions": [edited(score, rng) for score in pieces]}
    whole = load("music_context_preservation").compute(**inputs)
    for names in (list(PRESERVATION_METRICS), [f"{facet}_preservation" for facet in FACETS]):
        combined = evaluate.combine([load(name) for name in names])
        assert same(combined.compute(**inputs), whole)


def test_combined_with_prefixes(load: Callable[..., Any], rng: np.random.Generator) -> None:
    import evaluate

    contexts, middles = contexts_and_middles(rng)
    works = {"one": load("note_f1"), "two": load("musical_inpainting")}
    result = evaluate.combine(works, force_prefix=True).compute(predictions=middles, references=contexts)
    assert result["one_note_f1"] == result["two_note_f1"]


def test_likelihoods_combine(load: Callable[..., Any]) -> None:
    """Both kinds of module cannot be combined with each other: their inputs differ."""
    import evaluate

    works = {"one": load("inpainting_nll"), "two": load("inpainting_nll", "default")}
    result = evaluate.combine(works, force_prefix=True).compute(predictions=[[-0.5, -1.5], [-1.0, -2.0]])
    assert result["one_inpainting_nll"] == result["two_inpainting_nll"] == 1.25


def test_tags_by_dimension(load: Callable[..., Any]) -> None:
    """Each dimension has its score; a song that is silent in one of them has no average."""
    module = load("tag_semantic_similarity")
    people = {"musical_genres": ["流行"], "tempo_rhythm": ["慢速"]}
    other = {"musical_genres": ["流行"], "tempo_rhythm": []}
    result = module.compute(predictions=[people, other], references=[people] * 2, encoder="char-ngrams")
    names = [key.removesuffix("_n_defined") for key in result if key.endswith("_n_defined")]
    assert names == [
        "tag_semantic_similarity", "professional_average", "professional/musical_genres", "professional/tempo_rhythm"
    ]  # fmt: skip
    assert set(names) <= set(CATALOGUE)
    assert [result[f"{name}_n_defined"] for name in names] == [1, 1, 2, 1]
    nested = [{"professional": item} for item in (people, other)]
    whole = {"predictions": nested, "references": [{"professional": people}] * 2}
    assert same(module.compute(**whole, encoder="char-ngrams"), result)


def workers(count: int, folder: Path) -> Iterator[subprocess.Popen[str]]:
    code = (
        "import json, sys, evaluate, numpy as np\n"
        "rank, count, cache = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]\n"
        "metric = evaluate.load('./metrics/note_f1', num_process=count, process_id=rank, experiment_id='run',"
        " cache_dir=cache)\n"
        "contexts = np.full((6, 384), 128, np.uint8); contexts[:, ::12] = 60\n"
        "middles = contexts[:, 144:240].copy(); middles[3:] = 129\n"
        "metric.add_batch(predictions=middles[rank::count], references=contexts[rank::count])\n"
        "print(json.dumps(metric.compute()))\n"
    )
    for rank in range(count):
        command = [sys.executable, "-c", code, str(rank), str(count), str(folder)]
        yield subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_distributed(tmp_path: Path) -> None:
    """Two processes add their shares, the first one sees all: three of six items are right."""
    outputs = [json.loads(worker.communicate(timeout=300)[0]) for worker in list(workers(2, tmp_path))]
    assert (outputs[0]["note_f1"], outputs[0]["note_f1_n"]) == (0.5, 6)
    assert outputs[1] is None
