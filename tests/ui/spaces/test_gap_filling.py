"""Which models the inpainting page offers, what each can do, and what visitors can set for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from music_evals.errors import UnreadableFileError
from music_evals.protocols import INPAINTERS, load_plugin
from music_evals.ui.spaces import gap_filling, inpainting
from music_evals.ui.spaces.gap_filling import ABILITIES, ORDER, RANDOM_DECODINGS, Model, Places, find_places, models

ROOT = Path(__file__).resolve().parents[3]
ANY_GAP = Model("infill_transformer", "here", "infill_transformer", "best", 0.9)
SKETCHER = Model("sketchnet", "here", "sketchnet", "two_stage", 0.5)
PLAIN = Model("inpaintnet/folk", "here", "inpaintnet", "sample", 0.75)
PLACES = Places((ANY_GAP, SKETCHER, PLAIN), None)


@pytest.fixture(autouse=True)
def _no_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MUSIC_EVALS_ORG", "SPACE_AUTHOR_NAME"):
        monkeypatch.delenv(name, raising=False)


def weights(folder: Path, **settings: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "config.json").write_text(json.dumps(settings))


def test_what_is_said_of_models_is_what_their_classes_say() -> None:
    assert set(ORDER) == set(INPAINTERS)
    for name in INPAINTERS:
        of = load_plugin(INPAINTERS, name, "model")
        honest = [one for one in of.decodings if one not in of.leaking]
        ability = ABILITIES.get(name, gap_filling.Ability())
        assert ability.gap == (of.gap_limits if hasattr(of, "infill") else None)
        assert bool(ability.sketch) == ("sketches" in of.inpaint.__annotations__)
        assert {one for one in honest if one not in of.fixed} == set(RANDOM_DECODINGS) & set(honest)
        assert "sample" in honest  # the page offers it for every model


def test_models_are_offered_where_weights_lie_and_the_first_of_the_order_is_the_default(tmp_path: Path) -> None:
    assert find_places(tmp_path) == Places((), None)
    assert "markov" not in gap_filling.systems(Places((), None), ())
    weights(tmp_path / "models/vli/folk", model_type="vli", decoding="sample", temperature=1)
    weights(tmp_path / "models/inpaintnet", model_type="inpaintnet", decoding="sample", temperature=0.5)
    untrained = tmp_path / "models/infill_transformer"
    untrained.mkdir()
    (untrained / "config.json").write_text("{}")
    assert [model.name for model in find_places(tmp_path).models] == ["vli/folk", "inpaintnet"]
    weights(untrained, model_type="infill_transformer", decoding="best", temperature=0.9)
    places = find_places(tmp_path)
    assert models(places)[0] == Model("infill_transformer", str(untrained), "infill_transformer", "best", 0.9)
    assert gap_filling.systems(places, places.models)[:4] == ("infill_transformer", "vli/folk", "inpaintnet", "silence")
    (untrained / "config.json").write_text('{"model_type": "infill_transformer"}')
    with pytest.raises(UnreadableFileError, match="infill_transformer is no configuration"):
        find_places(tmp_path)


def test_those_of_the_repository_are_offered_with_data() -> None:
    here = find_places(ROOT)
    names = [model.name for model in here.models]
    assert {"vli", "sketchnet", "inpaintnet", "anticipation_rnn", "vli/folk", "inpaintnet/folk"} <= set(names)
    assert names == sorted(names, key=lambda name: (ORDER.index(name.partition("/")[0]), name))
    offered = gap_filling.systems(here, here.models)
    assert {"markov", "corpus_prior", "lag_vote"} <= set(offered)
    assert not {"reference", "best_lag"} & set(offered)  # a control sees the true middle, which a gap does not have


def test_on_the_hub_those_with_weights_are_offered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPACE_AUTHOR_NAME", "owner")
    assert find_places(tmp_path) == Places((), "owner/jsb_chorales", "owner")
    assert find_places(ROOT).owner == ""  # folders go first
    monkeypatch.setenv("MUSIC_EVALS_ORG", "org")
    places = find_places(ROOT)
    assert places == Places((), "org/jsb_chorales", "org")
    config = tmp_path / "config.json"
    config.write_text('{"model_type": "vli", "decoding": "argmax", "temperature": 1.0}')
    down = True

    def exists(place: str, file: str) -> bool:
        assert file == "model.safetensors"
        if down and place == "org/vli":
            raise ConnectionError("no network")
        return place in {"org/vli", "org/inpaintnet"}

    monkeypatch.setattr(huggingface_hub, "file_exists", exists)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda _place, _file: str(config))
    gap_filling._on_hub.cache_clear()
    assert [model.place for model in models(places)] == ["org/inpaintnet"]
    down = False  # what could not be reached is asked for again
    assert [model.place for model in models(places)] == ["org/vli", "org/inpaintnet"]
    gap_filling._on_hub.cache_clear()


def test_a_model_brings_its_own_decoding_and_temperature() -> None:
    found = inpainting.settings(PLACES, "inpaintnet/folk")
    assert found["temperature"]["value"] == 0.75
    assert found["temperature"]["visible"]
    assert found["n"]["interactive"]
    assert not found["decoding"]["interactive"]  # it is set to sample, and there is nothing else
    still = inpainting.settings(PLACES, "infill_transformer")
    assert "best draws nothing: there is one candidate" in still["decoding"]["info"]
    assert not still["temperature"]["visible"]
    assert not still["n"]["interactive"]
    drawn = inpainting.drawing(ANY_GAP, "sample", {})
    assert drawn["temperature"]["visible"]
    assert drawn["n"]["interactive"]


def test_what_a_model_cannot_do_is_disabled_with_the_reason() -> None:
    found = inpainting.settings(PLACES, "sketchnet")
    for name in ("first", "n_measures"):
        assert not found[name]["interactive"]
        assert found[name]["info"] == (
            "sketchnet fills measures 7 to 10 of the sixteen, no more and no fewer; infill_transformer fills other "
            "measures too."
        )
    assert found["sketch"]["interactive"]
    assert found["locks"]["why"] == (
        "sketchnet writes the whole gap anew and cannot keep notes in it; infill_transformer can."
    )
    free = inpainting.settings(PLACES, "infill_transformer")
    assert free["first"]["interactive"]
    assert free["n_measures"]["info"] == "infill_transformer fills 1 to 8 measures at once."
    assert not free["sketch"]["interactive"]
    assert free["sketch"]["info"] == "infill_transformer follows no sketch; sketchnet does."
    assert free["locks"]["why"] == ""
    alone = inpainting.settings(Places((), None), "copy_past")
    assert alone["locks"]["why"] == "copy_past writes the whole gap anew and cannot keep notes in it."
    assert not alone["decoding"]["visible"]
    assert inpainting.LONGEST == 8


def test_the_editor_is_told_gap_sketch_and_locks() -> None:
    assert inpainting.task(PLACES, "infill_transformer", 3, 2, "none") == {
        "gap": [48, 96],
        "sketch": "none",
        "noLocks": "",
    }
    told = inpainting.task(PLACES, "sketchnet", 7, 4, "rhythm")
    assert (told["gap"], told["sketch"]) == ([144, 240], "rhythm")
    assert "cannot keep notes" in told["noLocks"]
