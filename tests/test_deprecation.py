"""Old names keep working for a release, and warn."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest

from music_evals.annotations import MUSIB_LAYOUT
from music_evals.deprecation import renamed_options
from music_evals.models.baselines import make_baseline
from music_evals.pipelines import preservation
from music_evals.pipelines.gaps.filling import fill_gap
from music_evals.pipelines.gaps.steering import Followed

RENAMED = [
    ("pipelines.preservation", "judge", "score_pair"),
    ("pipelines.preservation", "Judgement", "PairScores"),
    ("pipelines.preservation", "entrance", "modality"),
    ("pipelines.descriptions", "judge_description", "score_description"),
    ("pipelines.descriptions", "DescriptionJudgement", "DescriptionScores"),
    ("pipelines.edit_conditions", "hear_conditions", "extract_conditions"),
    ("datasets.irish_folk.build", "drawn", "stored_splits"),
    ("datasets.irish_folk.build", "Drawn", "StoredSplits"),
    ("datasets.irish_folk.folk_rnn", "beside_published", "compare_with_published"),
]


MOVED = {
    "examples": ("training.data", "TokenExamples RollExamples RollWindows transpose draw_transpositions"),
    "music_encoders": ("encoders.music", "ENCODERS EncoderSettings MusicEncoder load_music_encoder"),
    "precomputed": ("encoders.precomputed", "FEATURES_SUFFIX PrecomputedFeatures read_features write_features"),
    "recipe": ("training.recipe", "DataConfig Recipe Stage TrainingConfig build_recipe read_recipe read_sections"),
    "roll_baselines": ("baselines", "ROLL_BASELINES RollBaseline make_roll_baseline"),
    "tag_recipe": ("training.recipe", "TaggerData TaggerTraining"),
    "tag_scores": ("training.taggers", "TagScores tag_scores"),
    "tag_songs": ("training.taggers", "Song load_songs"),
    "tag_training": ("training.taggers", "SCORES TaggerTrainingResult positive_weights train_tagger"),
    "tensor_files": ("layers.saving", "save_tensors"),
    "text_examples": ("training.writers", "TextExample TextSongs Tokenized load_text_songs tokenized"),
    "text_recipe": ("training.recipe", "TASKS TextData TextModel TextTraining"),
    "text_training": ("training.writers", "JUDGED_LOSSES TextTrainingResult train_text_model"),
}


@pytest.mark.parametrize("old", MOVED)
def test_a_module_is_imported_by_its_old_name(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    new, names = MOVED[old]
    monkeypatch.delitem(sys.modules, f"music_evals.models.{old}", raising=False)
    with pytest.warns(DeprecationWarning, match=rf"models\.{old} is called music_evals\.models\.{new} now") as warned:
        module = importlib.import_module(f"music_evals.models.{old}")
    assert module is importlib.import_module(f"music_evals.models.{new}")
    assert all(hasattr(module, name) for name in names.split())
    assert len(warned) == 1


def test_old_recipes_of_taggers_and_writers_are_recipes() -> None:
    recipe = importlib.import_module("music_evals.models.training.recipe")
    for name in ("build_tagger_recipe", "build_text_recipe"):
        with pytest.warns(DeprecationWarning, match=f"{name} is called build_recipe now"):
            assert getattr(recipe, name) is recipe.build_recipe


@pytest.mark.parametrize(("module", "old", "new"), RENAMED)
def test_an_old_name_is_the_new_one(module: str, old: str, new: str) -> None:
    found = importlib.import_module(f"music_evals.{module}")
    with pytest.warns(DeprecationWarning, match=f"{old} is called {new} now"):
        assert getattr(found, old) is getattr(found, new)


def test_other_names_are_missing_as_ever() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = preservation.nothing  # type: ignore[attr-defined]


def test_an_old_option_is_the_new_one() -> None:
    tokens = np.full(MUSIB_LAYOUT.n_steps, 60, dtype=np.uint8)
    with pytest.warns(DeprecationWarning, match="`judge` of fill_gap"):
        (candidate,) = fill_gap(tokens, make_baseline("copy_past"), judge=False)  # type: ignore[call-arg]
    assert not candidate.scores


def test_an_option_under_both_names_is_refused() -> None:
    @renamed_options(old="new")
    def double(new: int) -> int:
        return 2 * new

    assert double(new=2) == 4
    with pytest.raises(TypeError, match="'new', which was called 'old'"):
        double(old=1, new=2)  # type: ignore[call-arg]


def test_an_old_field_is_the_new_one() -> None:
    counts = Followed(matched=1, sketched=2, others=0)
    with pytest.warns(DeprecationWarning, match="matched"):
        assert counts.kept == 1
    with pytest.warns(DeprecationWarning, match="sketched"):
        assert counts.drawn == 2
