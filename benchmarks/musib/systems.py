"""Who is judged on what: the four designs, the data sets, and the weights that there are."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from music_evals.benchmark.inputs import split_names
from music_evals.errors import MusicEvalsError
from music_evals.files import write_atomically
from music_evals.repositories import DATASETS, MODELS
from music_evals.yaml_files import read_yaml_file

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent


class Design(NamedTuple):
    """A published model and how its authors' code let it decode."""

    name: str  # folder under models/
    published: tuple[str, ...]  # its rows in the tables
    decoding: str  # that of the published evaluation
    leaks: bool  # whether that decoding reads the true middle
    settings: tuple[tuple[str, Any], ...] = ()  # of the configuration, with which the authors' code decodes


DESIGNS = (
    Design("anticipation_rnn", ("Anticipation-RNN",), "teacher_forced", leaks=True),
    Design("inpaintnet", ("InpaintNet",), "forced_latents", leaks=True, settings=(("sampled_latents", True),)),
    Design("sketchnet", ("SketchNet",), "without_connector", leaks=False, settings=(("sampled_latents", True),)),
    Design(
        "vli", ("VLI (paper)", "VLI (thesis)"), "first_onset", leaks=True,
        settings=(("temperature", 1.0), ("top_p", 0.9), ("free_onsets", True)),
    ),
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Data:
    """A data set: where it is, which weights belong to it, and which published table is of it."""

    key: str  # as the tables here call it
    title: str
    dataset: str
    config: str
    weights: tuple[str, ...]  # names of the folders below a model's that are of this data set
    table: str | None  # of `benchmark.published`; None: no published table is about this music

    @property
    def place(self) -> str:
        """Its folder in this repository."""
        return str(ROOT / DATASETS / self.dataset)


@functools.cache
def absent(data: Data) -> str:
    """Return why a data set cannot be read here; nothing where it can. One that is built on first use is built."""
    try:
        split_names(data.place, data.config)
    except MusicEvalsError as error:
        return str(error)
    return ""


DATA = (
    Data("jsb", "JSB Chorales", "jsb_chorales", "musib", ("jsb", "jsb_chorales"), "musib_table3"),
    Data("folk", "Irish folk (stand-in)", "irish_folk", "music21_folk", ("folk", "irish_folk"), None),
    Data("cleared_folk", "Irish folk, cleared", "irish_folk", "music21_folk_cleared", ("folk", "irish_folk"), None),
    Data("small_folk", "Irish folk, 171 songs (stand-in)", "irish_folk", "small", ("small", "folk"), None),
    Data("folk_rnn", "IrishFolkSong", "irish_folk", "folk_rnn", ("folk_rnn",), "musib_table2"),
    Data("small_folk_rnn", "Small-IrishFolkSong", "irish_folk", "folk_rnn_small", ("folk_rnn_small",), "musib_table4"),
)
"""In the order of the tables. The stand-ins are other tunes than the published ones: no published table is of them."""


def weights_of(design: Design, data: Data, models: Path | None = None) -> Path | None:
    """Return the folder with a design's weights for a data set; None where it is not trained on it."""
    home = (models or ROOT / MODELS) / design.name
    folders = [home / name for name in data.weights]
    if trained_on(home) in data.weights:
        folders.append(home)
    return next((folder for folder in folders if (folder / "model.safetensors").is_file()), None)


def as_published(design: Design, folder: Path, out: Path) -> Path:
    """Return a copy of a model's folder with the settings of the authors' code, made below `out` where it is not."""
    if not design.settings:
        return folder
    config = json.loads((folder / "config.json").read_text(encoding="utf-8")) | dict(design.settings)
    text = json.dumps(config, indent=2, sort_keys=True).encode()
    copy = out / "as_published" / f"{fingerprint(folder)}-{hashlib.sha256(text).hexdigest()[:8]}" / design.name
    copy.mkdir(parents=True, exist_ok=True)
    write_atomically(copy / "config.json", text)
    write_atomically(copy / "model.safetensors", (folder / "model.safetensors").read_bytes())
    return copy


def trained_on(folder: Path) -> str | None:
    """Return the data set that the recipe beside the weights names; of a folder without recipe it is not known."""
    recipe = folder / "train.yaml"
    if not recipe.is_file():
        return None
    return Path(read_yaml_file(recipe)["data"]["dataset"]).name


def n_parameters(folder: Path) -> int:
    """Count the numbers in the weights, from their header alone."""
    with (folder / "model.safetensors").open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return sum(math.prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__")


def size_of(folder: Path) -> str:
    """Return the size in words: a model of 2 million parameters says nothing of one of 94 million."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    size = config.get("size", "paper")  # Anticipation-RNN has its published size alone
    return f"{size}, {n_parameters(folder) / 1e6:.2f} M"


def fingerprint(folder: Path) -> str:
    """Return a hash of configuration and weights."""
    digest = hashlib.sha256()
    for name in ("config.json", "model.safetensors"):
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()[:16]
