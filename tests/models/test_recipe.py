"""Recipes: what the shipped one holds, and what is said of wrong ones."""

from pathlib import Path

import pytest

from music_evals.errors import InvalidInputError, UnknownNameError, UnreadableFileError
from music_evals.models.recipe import find_recipe, read_recipe

SHIPPED = Path(__file__).parents[2] / "models" / "anticipation_rnn" / "train.yaml"


def test_the_shipped_recipe_is_complete():
    shipped = read_recipe(SHIPPED)
    assert shipped.model_type == "anticipation_rnn"
    assert (shipped.data.train, shipped.data.validation) == ("train", "validation")
    assert (shipped.training.transpose_low, shipped.training.transpose_high) == (-6, 6)
    assert (SHIPPED.parent / shipped.data.dataset).resolve().name == "jsb_chorales"


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"training": "{bach_size: 3}"}, UnknownNameError, "unknown training setting 'bach_size'; did you mean batch_"),
        ({"trainings": "{}"}, UnknownNameError, "unknown recipe section 'trainings'; did you mean training"),
        ({"training": "{batch_size: 0}"}, InvalidInputError, "batch_size must be at least 1, got 0"),
        ({"training": "{cycles: [3, 0]}"}, InvalidInputError, "cycles must hold at least one epoch each"),
        ({"training": "{precision: half}"}, InvalidInputError, "precision must be float32 or bfloat16, got 'half'"),
        ({"training": "{learning_rate: fast}"}, InvalidInputError, "wrong type"),
        ({"training": "3"}, InvalidInputError, "must be a mapping"),
        ({"data": "{config: tiny}"}, InvalidInputError, "data settings are incomplete.*dataset"),
        ({"training": "{"}, UnreadableFileError, "cannot read the recipe"),
    ],
)
def test_recipes_are_checked(tmp_path, write_recipe, changes, error, message):
    with pytest.raises(error, match=message):
        read_recipe(write_recipe(tmp_path, **changes))


def test_a_recipe_is_a_file_a_folder_or_the_name_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own" / "train.yaml"
    own.parent.mkdir()
    own.touch()
    monkeypatch.chdir(tmp_path)
    assert find_recipe(own, None) == (own, own.parent)
    assert find_recipe("own", "out") == (Path("own/train.yaml"), Path("out"))
    for name in ("anticipation_rnn", "models/anticipation_rnn/train.yaml"):
        assert find_recipe(name, "out") == (SHIPPED, Path("out"))
        with pytest.raises(InvalidInputError, match="`out` says where to write"):
            find_recipe(name, None)
    assert find_recipe("nothing.yaml", None) == (Path("nothing.yaml"), Path())
    monkeypatch.chdir(SHIPPED.parent)
    assert find_recipe("train.yaml", None) == (Path("train.yaml"), Path())
