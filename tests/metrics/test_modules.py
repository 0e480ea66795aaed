"""Laws of every module under `metrics/`, fed by the catalogue; how modules of a kind are tried is in `families.py`."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conformance.rules import ROOT, over

from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.metrics.catalogue import CATALOGUE, PRESERVATION_METRICS
from music_evals.pipelines.preservation import FACETS

from .families import EXTRAS, FAMILIES, NAMES, SCORES, family_of, is_drawn, kind_of, variants_of

of_each_module = over([name for name in NAMES if kind_of(name) in FAMILIES], lambda name: f"metrics/{name}")

Load = Callable[..., Any]


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
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


def options_of(name: str, n_resamples: int = 20) -> dict[str, Any]:
    """Return what makes a module quick: its family's options, and few resamples where some are drawn."""
    return {**family_of(name).options, **({"n_resamples": n_resamples} if is_drawn(name) else {})}


def same(first: Any, second: Any) -> bool:
    """Tell whether two results are equal; NaN is equal to NaN here."""
    return json.dumps(first) == json.dumps(second)


@of_each_module
def test_what_the_module_says_of_itself(name: str, load: Load) -> None:
    module = load(name)
    assert (module.name, module.module_type) == (name, "metric")
    assert len(module.description) > 30
    # where what is our own comes from
    own = "wang2024muchin" if kind_of(name) in {"words", "themes"} else "vishe2025musecpbench"
    assert f"{{{CATALOGUE[SCORES[name][0]].paper or own}," in module.citation
    assert module.info.license == "Apache-2.0"
    assert "predictions" in module.inputs_description


@of_each_module
def test_result_keys_types_and_range(name: str, load: Load) -> None:
    n = family_of(name).n_items
    result = load(name).compute(**family_of(name).inputs(seeded()), **options_of(name, 50))
    keys: list[str] = []
    for score in SCORES[name]:
        keys += [score, f"{score}_ci", f"{score}_n", f"{score}_n_defined", f"{score}_n_clusters"]
        keys += [f"{score}_null"] if CATALOGUE[score].kind == "set" else []
        keys += [f"{score}_reference"] if CATALOGUE[score].direction == "none" else []
        assert type(result[score]) is float
        assert CATALOGUE[score].low <= result[score] <= CATALOGUE[score].high
        low, high = result[f"{score}_ci"]
        assert {type(low), type(high)} == {float}
        assert low <= high or (math.isnan(low) and math.isnan(high))  # all items alike
        assert (type(result[f"{score}_n"]), result[f"{score}_n"]) == (int, n)
        assert 0 < result[f"{score}_n_defined"] <= n
        assert 0 < result[f"{score}_n_clusters"] <= n + 1e-9
    assert list(result) == keys + EXTRAS.get(name, [])
    json.dumps({key: value for key, value in result.items() if not key.endswith("_ci")}, allow_nan=False)


@pytest.mark.slow
@of_each_module
def test_per_item_is_one_dict_an_item(name: str, load: Load) -> None:
    family = family_of(name)
    options = {**options_of(name, 0), **family.averages_items}
    result = load(name).compute(**family.inputs(seeded()), **options, per_item=True)
    rows = result["per_item"]
    assert len(rows) == family.n_items
    assert {type(value) for row in rows for value in row.values()} >= {float}
    for score in (score for score in SCORES[name] if CATALOGUE[score].kind == "item"):
        defined = [row[score] for row in rows if not math.isnan(row[score])]
        assert {type(row[score]) for row in rows} == {float}
        assert result[score] == pytest.approx(math.fsum(defined) / len(defined))
        assert result[f"{score}_n_defined"] == len(defined)


@pytest.mark.slow
@of_each_module
def test_equal_to_the_library(name: str, load: Load) -> None:
    """The folder and the workshop give the same numbers, options included."""
    family, n = family_of(name), 3 if kind_of(name) == "edits" else 12
    inputs = family.inputs(seeded(), n)
    grouped: dict[str, Any] = {"groups": [f"song {i // 2}" for i in range(n)], "confidence": 0.8}
    options: list[dict[str, Any]] = [{}, *map(dict, family.others)]
    options += [grouped | options_of(name, 60) | ({"variant": "official"} if variants_of(name) else {})]
    options += [{"variant": "paper", **options_of(name)}] if variants_of(name) else []
    options += [{"n": 3}] if name == "lyric_diversity" else []
    for chosen in ({**family.options, **given} for given in options):
        assert same(load(name).compute(**inputs, **chosen), family.evaluate(name, **inputs, **chosen))


@pytest.mark.slow
@of_each_module
def test_added_one_by_one_is_the_same(name: str, load: Load) -> None:
    module, inputs, options = load(name), family_of(name).inputs(seeded(), 3), options_of(name)
    whole = module.compute(**inputs, **options)
    for i, prediction in enumerate(inputs["predictions"]):
        reference = {"reference": inputs["references"][i]} if "references" in inputs else {}
        module.add(prediction=prediction, **reference)
    assert same(module.compute(**options), whole)


@pytest.mark.slow
@of_each_module
def test_the_order_of_the_items_changes_no_score(name: str, load: Load) -> None:
    inputs, options = family_of(name).inputs(seeded(), 4), options_of(name)
    first = load(name).compute(**inputs, **options)
    second = load(name).compute(**{side: items[::-1] for side, items in inputs.items()}, **options)
    for score in SCORES[name]:
        assert first[score] == pytest.approx(second[score], rel=1e-9, abs=1e-12, nan_ok=True)


@pytest.mark.slow
@of_each_module
def test_perfect_predictions(name: str, load: Load) -> None:
    """They have the best value of the catalogue, or that of the references themselves."""
    result = load(name).compute(**family_of(name).inputs(seeded(), 3, perfect=True), **options_of(name))
    for score in SCORES[name]:
        best = result[f"{score}_reference"] if CATALOGUE[score].direction == "none" else CATALOGUE[score].best
        assert result[score] == pytest.approx(best, abs=family_of(name).tolerance, nan_ok=math.isnan(best))


@pytest.mark.slow
@of_each_module
def test_unknown_options_and_values_are_refused(name: str, load: Load) -> None:
    module, family = load(name), family_of(name)
    inputs, options = family.inputs(seeded(), 2), options_of(name)
    with pytest.raises(TypeError, match="no_such_option"):
        module.compute(**inputs, no_such_option=1)
    if not variants_of(name):
        with pytest.raises(TypeError, match="variant"):
            module.compute(**inputs, **options, variant="official")
    if family.wrong:
        option, wrong, right = family.wrong
        with pytest.raises(UnknownNameError, match=f"did you mean {right}"):
            module.compute(**inputs, **{**options, option: wrong})
    assert module.compute(**inputs, **options)


@pytest.mark.slow
@of_each_module
def test_a_config_name_is_a_variant(name: str, load: Load) -> None:
    """What is loaded as official computes that."""
    plain, inputs, options = load(name), family_of(name).inputs(seeded(), 2), options_of(name)
    default = plain.compute(**inputs, **options)
    assert same(load(name, "default").compute(**inputs, **options), default)
    if variants_of(name):
        official = plain.compute(**inputs, **options, variant="official")
        assert same(load(name, "official").compute(**inputs, **options), official)


@over(["note_f1", "motif_recall", "lyric_structure"], lambda name: f"metrics/{name}")
def test_another_word_than_the_config_is_refused(name: str, load: Load) -> None:
    """The same one is not; of each kind of module with variants one."""
    plain, inputs, options = load(name), family_of(name).inputs(seeded(), 2), options_of(name)
    for variant in ("corrected", "official", "paper"):
        module = load(name, variant)
        result = plain.compute(**inputs, **options, variant=variant)
        assert same(module.compute(**inputs, **options, variant=variant), result)
        with pytest.raises(ValueError, match=f"contradicts the config '{variant}'"):
            module.compute(**inputs, **options, variant="paper" if variant == "official" else "official")
        assert same(module.compute(**inputs, **options), result)


@over(NAMES, lambda name: f"metrics/{name}")
def test_unknown_config_names_are_refused(name: str, load: Load) -> None:
    for wrong, advice in (("oficial", "did you mean official") if variants_of(name) else ("official", "no variants"),):
        with pytest.raises(UnknownNameError, match=advice):
            load(name, wrong)
    with pytest.raises(UnknownNameError, match="unknown config 'musib'"):
        load(name, "musib")


def test_modules_combine(load: Load, rng: np.random.Generator) -> None:
    """All modules of one kind go through `evaluate.combine`, and keep their numbers."""
    import evaluate

    inputs, options = FAMILIES["contexts"].inputs(rng), {"groups": np.arange(12) // 4}
    names = [name for name in NAMES if kind_of(name) == "contexts" and name != "musical_inpainting"]
    combined = evaluate.combine([load(name) for name in names])
    result = combined.compute(**inputs, **options)
    whole = load("musical_inpainting").compute(**inputs, **options)
    assert all(same(result[key], value) for key, value in whole.items())
    combined.add_batch(**{side: items[:5] for side, items in inputs.items()})
    for reference, prediction in zip(inputs["references"][5:], inputs["predictions"][5:], strict=True):
        combined.add(prediction, reference)
    assert same(combined.compute(**options), result)


def test_options_of_divergences_are_refused_elsewhere(load: Load, rng: np.random.Generator) -> None:
    """A score that draws nothing and has no logarithm does not take these options and then ignore them."""
    inputs = FAMILIES["contexts"].inputs(rng)
    for name in (name for name in NAMES if kind_of(name) == "contexts"):
        module = load(name)
        for option, value in (("n_resamples", 20), ("seed", 1), ("base", "bits")):
            if is_drawn(name):
                assert module.compute(**inputs, **{"n_resamples": 20, option: value})
            else:
                with pytest.raises(InvalidInputError, match=f"`{option}`"):
                    module.compute(**inputs, **{option: value})


def test_modules_of_edits_combine(load: Load, rng: np.random.Generator) -> None:
    """The eleven metrics, one by one, are what the four facets and the whole give in one pass."""
    import evaluate

    inputs = FAMILIES["edits"].inputs(rng, 2)
    whole = load("music_context_preservation").compute(**inputs)
    for names in (list(PRESERVATION_METRICS), [f"{facet}_preservation" for facet in FACETS]):
        combined = evaluate.combine([load(name) for name in names])
        assert same(combined.compute(**inputs), whole)


def test_combined_with_prefixes(load: Load, rng: np.random.Generator) -> None:
    import evaluate

    works = {"one": load("note_f1"), "two": load("musical_inpainting")}
    result = evaluate.combine(works, force_prefix=True).compute(**FAMILIES["contexts"].inputs(rng))
    assert result["one_note_f1"] == result["two_note_f1"]


def test_likelihoods_combine(load: Load) -> None:
    """Both kinds of module cannot be combined with each other: their inputs differ."""
    import evaluate

    works = {"one": load("inpainting_nll"), "two": load("inpainting_nll", "default")}
    result = evaluate.combine(works, force_prefix=True).compute(predictions=[[-0.5, -1.5], [-1.0, -2.0]])
    assert result["one_inpainting_nll"] == result["two_inpainting_nll"] == 1.25


def test_tags_by_dimension(load: Load) -> None:
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
