"""Which models the inpainting page offers, where they are, and what each can do.

A model is offered where its weights are. The page is built before any model is loaded: what a visitor may set is read
from config.json, and what a type of model can do stands in `ABILITIES`, which a test compares with the models.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from music_evals.annotations import MUSIB_LAYOUT
from music_evals.benchmark.tasks.inpainting.systems import baseline_names
from music_evals.errors import UnreadableFileError, hub_errors
from music_evals.files import parse_json
from music_evals.protocols import CONTROLS, GapLimits
from music_evals.ui.places import hub_owner

__all__ = [
    "ABILITIES",
    "DATASET",
    "DATASET_CONFIG",
    "FITTED",
    "MIDDLE",
    "ORDER",
    "OWN",
    "RANDOM_DECODINGS",
    "Ability",
    "Model",
    "Places",
    "abilities",
    "find_places",
    "longest_gap",
    "model_of",
    "models",
    "systems",
    "why_no_locks",
    "why_no_sketch",
    "why_this_gap",
]

DATASET: Final = "jsb_chorales"
DATASET_CONFIG: Final = "musib"
FITTED: Final = ("markov", "corpus_prior")
"""Baselines that are fitted on the train split of the data set."""

ORDER: Final = ("infill_transformer", "vli", "sketchnet", "anticipation_rnn", "inpaintnet")
"""Models as the menu has them; the first one that is there is the default. That of any gap stands first, then the
highest note F1 on the test set of the chorales, as their cards have it."""

OWN: Final = "own"
"""The decoding that a model's config.json names."""

RANDOM_DECODINGS: Final = ("sample", "two_stage")
"""Decodings that draw; all others write the same every time, and have no temperature."""


MIDDLE: Final = (
    f"measures {MUSIB_LAYOUT.past_measures + 1} to {MUSIB_LAYOUT.past_measures + MUSIB_LAYOUT.middle_measures} of the "
    "sixteen"
)


class Ability(NamedTuple):
    """What a type of model can do besides filling measures 7 to 10 of the sixteen."""

    gap: GapLimits | None = None
    """What gaps it can take, of any place, and with locked notes; None where it fills the middle and nothing else."""
    sketch: str = ""
    """``module:class`` of the sketch that it can be given."""


ABILITIES: Final = {
    "infill_transformer": Ability(gap=GapLimits(steps=504, hidden_steps=192, quantum=6)),
    "sketchnet": Ability(sketch="music_evals.models.sketchnet:Sketch"),
}
"""Type of model -> what it can do; others fill the middle of sixteen measures."""


@dataclasses.dataclass(frozen=True)
class Model:
    """A model with weights."""

    name: str  # in the menu: its folder below `models`, such as vli/folk
    place: str  # a folder or a Hub id
    type: str  # of `protocols.INPAINTERS`
    decoding: str  # of its config.json
    temperature: float

    def draws(self, decoding: str = OWN) -> bool:
        """Tell whether a decoding draws: whether there is a temperature, and more than one candidate."""
        return (self.decoding if decoding == OWN else decoding) in RANDOM_DECODINGS


@dataclasses.dataclass(frozen=True)
class Places:
    """Where models and training data are."""

    models: tuple[Model, ...]  # those in folders here
    dataset: str | None  # a folder or a Hub id; None where it is not
    owner: str = ""  # whose models on the Hub are offered; empty where they are taken from folders


def find_places(root: str | os.PathLike[str]) -> Places:
    """Find models and data.

    They are those of the Hub where the environment variable ``MUSIC_EVALS_ORG`` names an organisation; else folders of
    the repository at `root`; else, on the Hub, repositories of the Space's owner.
    """
    data, local_models = Path(root) / "datasets_scripts" / DATASET, _in_folders(Path(root) / "models")
    if named := hub_owner(here=True):
        return Places((), f"{named}/{DATASET}", named)
    owner = hub_owner(here=False)
    place = str(data) if (data / "data").is_dir() else f"{owner}/{DATASET}" if owner else None
    return Places(local_models, place, "" if local_models else owner)


def _in_folders(folder: Path) -> tuple[Model, ...]:
    """Return the models whose weights lie in folders, each followed by its variants."""
    described = []
    for name in ORDER:
        for weights in (folder / name / "model.safetensors", *sorted((folder / name).glob("*/model.safetensors"))):
            if weights.is_file():
                place = weights.parent
                described.append(_described(place.relative_to(folder).as_posix(), str(place), place / "config.json"))
    return tuple(described)


def _described(name: str, place: str, config: Path) -> Model:
    try:
        settings = parse_json(config.read_bytes(), str(config))
        return Model(name, place, settings["model_type"], settings["decoding"], float(settings["temperature"]))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UnreadableFileError(f"the config.json of {name} is no configuration of a model: {error!r:.80}") from error


def models(places: Places) -> tuple[Model, ...]:
    """Return the models that are offered, the default first; those of the Hub are looked up here."""
    if not places.owner:
        return places.models
    offered = []
    for name in ORDER:
        try:
            model = _on_hub(places.owner, name)
        except hub_errors():  # what cannot be reached now cannot be offered now; the next visit asks again
            continue
        offered += [model] if model else []
    return tuple(offered)


@functools.cache
def _on_hub(owner: str, name: str) -> Model | None:
    """Return a model of the Hub, or None if missing or without weights."""
    import huggingface_hub

    place = f"{owner}/{name}"
    if not huggingface_hub.file_exists(place, "model.safetensors"):
        return None
    return _described(name, place, Path(huggingface_hub.hf_hub_download(place, "config.json")))


def systems(places: Places, known: Sequence[Model]) -> tuple[str, ...]:
    """Return all that can fill a gap here, models first."""
    # a control needs the true middle, and a gap has none
    plain = [name for name in baseline_names("all") if name not in {*FITTED, *CONTROLS}]
    return (*(model.name for model in known), *plain, *(FITTED if places.dataset else ()))


def model_of(known: Sequence[Model], name: str) -> Model | None:
    """Return a model by its name; None for a baseline."""
    return next((model for model in known if model.name == name), None)


def abilities(model: Model | None) -> Ability:
    """Return what a model can do, or a baseline."""
    return ABILITIES.get(model.type, Ability()) if model else Ability()


def longest_gap(model: Model | None) -> int:
    """Return how many measures a model can fill at most."""
    limits = abilities(model).gap
    if limits is None:
        return MUSIB_LAYOUT.middle_measures
    return min(limits.hidden_steps // MUSIB_LAYOUT.steps_per_measure, MUSIB_LAYOUT.n_measures - 1)


def why_this_gap(model: Model | None, name: str, known: Sequence[Model]) -> str:
    """Return why a system fills the middle and nothing else; empty where it fills any gap."""
    if abilities(model).gap is not None:
        return ""
    return f"{name} fills {MIDDLE}, no more and no fewer{_who(known, 'fills other measures too', gap=True)}."


def why_no_locks(model: Model | None, name: str, known: Sequence[Model]) -> str:
    """Return why a system cannot keep notes of the gap; empty where it can."""
    if abilities(model).gap is not None:
        return ""
    return f"{name} writes the whole gap anew and cannot keep notes in it{_who(known, 'can', gap=True)}."


def why_no_sketch(model: Model | None, name: str, known: Sequence[Model]) -> str:
    """Return why a system follows no sketch; empty where it can."""
    if abilities(model).sketch:
        return ""
    return f"{name} follows no sketch{_who(known, 'does', gap=False)}."


def _who(known: Sequence[Model], does: str, *, gap: bool) -> str:
    can = [model.name for model in known if (abilities(model).gap if gap else abilities(model).sketch)]
    return f"; {can[0]} {does}" if can else ""
