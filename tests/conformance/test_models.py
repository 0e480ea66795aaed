"""Every folder under `models/` obeys the contract of a model."""

from __future__ import annotations

import functools
import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.rules import ROOT, card_of, missing_topics, over, place, subfolders

from music_evals.errors import ModelUnavailableError
from music_evals.models.training.recipe import read_sections
from music_evals.protocols import (
    EDITORS,
    INPAINTERS,
    STYLE_TRANSFERS,
    TAGGERS,
    TUNED_WRITERS,
    Inpainter,
    StyleTransfer,
    Tagger,
    load_plugin,
)

# A model is a folder with a config.json; models/vli/folk is a variant, by the recipe models/vli/train-folk.yaml.
WINDOWS = sorted(path.parent for path in (ROOT / "models").rglob("config.json") if path.parent.name != "run")


def needs_others_weights(folder: Path) -> bool:
    """Tell whether the head of the card says that only others have weights: an editing system, not trained here."""
    return card_of(folder)[0].get("status") == "external-weights"


EXTERNAL = [folder for folder in WINDOWS if needs_others_weights(folder)]
FOLDERS = [folder for folder in WINDOWS if folder not in EXTERNAL]
of_each_model = over(FOLDERS, place)
of_each_external_model = over(EXTERNAL, place)
REGISTRY = {**INPAINTERS, **TAGGERS, **STYLE_TRANSFERS}
ALL = {**REGISTRY, **TUNED_WRITERS}
PROTOCOLS = ((INPAINTERS, Inpainter), (TAGGERS, Tagger), (STYLE_TRANSFERS, StyleTransfer))
MAX_BYTES = 12 * 2**20
MAX_TOTAL_BYTES = 120 * 2**20
TOPICS = {
    "what it is for": r"^#+ .*(use|what)",
    "how it was trained": r"^#+ .*train",
    "how well it does": r"^#+ .*(result|evaluation|score)",
    "what it cannot do": r"^#+ .*(limit|beware)",
    "whom to cite": r"^#+ .*cit",
    "its licence": r"licen[cs]e",
    "the command that trains it": r"music-evals train models/",
}
EXTERNAL_TOPICS = {
    "what it is for": r"^#+ .*(use|what)",
    "how to get the weights": r"^#+ .*get the weights",
    "that it was not reproduced": r"implemented, not reproduced",
    "what it cannot do": r"^#+ .*(limit|beware)",
    "whom to cite": r"^#+ .*cit",
    "its licence": r"^#+ .*licen[cs]e",
    "the command that runs it": r"music-evals edit ",
}


def is_variant(folder: Path) -> bool:
    return folder.parent != ROOT / "models"


def recipe_of(folder: Path) -> Path:
    return folder.parent / f"train-{folder.name}.yaml" if is_variant(folder) else folder / "train.yaml"


@functools.cache
def recipe(folder: Path) -> dict[str, Any]:
    return read_sections(recipe_of(folder))


def weights(folder: Path) -> Path | None:
    path = folder / "model.safetensors"
    return path if path.is_file() else None


def dtypes(path: Path) -> set[str]:
    """Read the types of the tensors from the file's own header."""
    with path.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
    return {entry["dtype"] for name, entry in header.items() if name != "__metadata__"}


def test_every_model_folder_is_found() -> None:
    tops = {path.name for path in subfolders("models")}
    assert tops == {path.relative_to(ROOT / "models").parts[0] for path in WINDOWS}, "each model has a config.json"


@of_each_model
def test_files(folder: Path) -> None:
    found = {path.name for path in folder.iterdir() if path.is_file()}
    needed = {"README.md", "config.json"} if is_variant(folder) else {"README.md", "config.json", "train.yaml"}
    assert found >= needed
    others = {name for name in found if not re.fullmatch(r"train-\w+\.yaml", name)}
    assert not others - needed - {"model.safetensors"}, "a model folder holds nothing else"


@of_each_model
def test_the_model_type_is_registered(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    kind = recipe(folder)["model_type"]
    assert kind in ALL
    assert kind in json.dumps(config), "config.json must tell the model type"
    assert isinstance(recipe(folder)["training"]["seed"], int)


@of_each_model
def test_weights_are_small_and_half_precise(folder: Path) -> None:
    path = weights(folder)
    if path is None:
        return  # untrained
    assert path.stat().st_size <= MAX_BYTES
    assert dtypes(path) == {"F16"}


def test_all_weights_together_are_small() -> None:
    shipped = [path for path in (ROOT / "models").rglob("*.safetensors") if path.parent.name != "run"]
    assert sum(path.stat().st_size for path in shipped) <= MAX_TOTAL_BYTES


@of_each_model
def test_untrained_models_say_so(folder: Path) -> None:
    said = card_of(folder)[0].get("status")
    assert (said == "untrained") == (weights(folder) is None)


@of_each_model
def test_card_yaml(folder: Path) -> None:
    head, _ = card_of(folder)
    assert head["license"]
    assert head["library_name"] == "music_evals"
    assert head["tags"]
    if head.get("status") != "untrained":
        assert head["model-index"][0]["results"], "a trained model tells its scores"


@of_each_model
def test_card_speaks_of_all_topics(folder: Path) -> None:
    missing = missing_topics(card_of(folder)[1], TOPICS)
    assert not missing, f"the card must tell {missing}"


@pytest.mark.slow
@of_each_model
def test_from_pretrained(folder: Path) -> None:
    if weights(folder) is None:
        return  # untrained
    model = load_plugin(REGISTRY, recipe(folder)["model_type"], "model").from_pretrained(str(folder))
    (protocol,) = (protocol for known, protocol in PROTOCOLS if recipe(folder)["model_type"] in known)
    assert isinstance(model, protocol)
    assert getattr(model, "sees_reference", False) is False
    assert not model.training


def test_no_model_type_stands_for_two_things() -> None:
    assert len(ALL) == sum(len(known) for known, _ in PROTOCOLS) + len(TUNED_WRITERS)


@over(sorted(TUNED_WRITERS))
def test_what_a_language_model_is_tuned_for_is_read_by_a_writer_of_lyrics(kind: str) -> None:
    made = load_plugin(TUNED_WRITERS, kind, "model")
    assert {"write", "describe", "deterministic"} <= set(dir(made)), "see protocols.LyricWriter"


@over(sorted(ALL))
def test_every_model_type_has_a_folder(kind: str) -> None:
    assert kind in {recipe(folder)["model_type"] for folder in FOLDERS}


@over(sorted(REGISTRY))
def test_every_model_type_can_be_loaded_and_trained(kind: str) -> None:
    network = load_plugin(REGISTRY, kind, "model")
    assert callable(network.from_pretrained)
    assert callable(network.save_pretrained)
    assert network.config_class().model_type == kind


# --- editing systems with weights of others: a card and the sizes of a tiny model, and never a weight or a score


@of_each_external_model
def test_the_folder_of_an_editing_system_holds_card_and_config_alone(folder: Path) -> None:
    assert not is_variant(folder)
    assert {path.name for path in folder.iterdir() if path.name != "__pycache__"} == {"README.md", "config.json"}


@of_each_external_model
def test_an_editing_system_of_that_name_refuses_to_work_without_weights(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["model_type"] == folder.name
    system = load_plugin(EDITORS, folder.name, "editing system")
    assert callable(system.from_pretrained)
    with pytest.raises(ModelUnavailableError, match=r"licence"):
        system()


@of_each_external_model
def test_the_card_yaml_of_an_editing_system(folder: Path) -> None:
    head, _ = card_of(folder)
    assert head["license"]
    assert head["library_name"] == "music_evals"
    assert "music-editing" in head["tags"]
    assert "model-index" not in head, "it is in no table of results"


@of_each_external_model
def test_the_card_of_an_editing_system_speaks_of_all_topics(folder: Path) -> None:
    missing = missing_topics(card_of(folder)[1], EXTERNAL_TOPICS)
    assert not missing, f"the card must tell {missing}"


def test_only_editing_systems_have_weights_of_others() -> None:
    assert EXTERNAL
    assert {folder.name for folder in EXTERNAL} <= EDITORS.keys() - REGISTRY.keys()
