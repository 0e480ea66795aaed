"""Every recipe that ships trains as it always did: its first losses, and the weights of a run that was killed.

Networks and data are tiny, all else is what the recipe says. ``python -m tests.models.training.test_first_losses``
writes the golden file anew.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = Path(__file__).with_name("first_losses.json")
RECIPES = sorted(path.relative_to(ROOT / "models").as_posix() for path in (ROOT / "models").glob("*/train*.yaml"))
N_LOSSES = 20

pytestmark = pytest.mark.slow

MEASURES = ["note_embedding_size=4", "measure_size=12", "latent_size=6", "context_size=8"]
SIZES = {
    "anticipation_rnn": ["hidden_size=12", "linear_size=8", "note_embedding_size=4"],
    "bmst": ["window=8", "embedding=6", "n_heads=2", "n_layers=1", "inner=8", "pitch_width=4", "filters=4"],
    "full_sequence": ["window=8", "band=6", "width=8", "n_layers=1", "n_heads=2", "inner=8", "pitch_steps=4"],
    "infill_transformer": ["model_size=16", "n_layers=1", "n_heads=2", "inner_size=16", "step_size=8"],
    "inpaintnet": MEASURES,
    "lyric_writer": ["tuning=lora", "rank=2"],
    "music_tagger": ["hidden_size=12"],
    "sketchnet": [*MEASURES, "connector_size=16", "connector_layers=1"],
    "style_lstm": ["n_groups=2", "group=4", "width=10", "n_layers=2", "inner=8", "pitch_width=4", "filters=4"],
    "vli": ["model_size=16", "n_layers=1", "n_heads=2", "inner_size=16", "embedding_size=4"],
}


def write_rows(folder: Path) -> None:
    """Write the first rows of the chorales, windows and pieces, as a dataset of their own."""
    import datasets

    head = "---\nconfigs:\n"
    for config, n in (("musib", {"train": 40, "validation": 6}), ("style", {"train": 3, "validation": 1})):
        head += f"- config_name: {config}\n  data_files:\n"
        for split, count in n.items():
            rows = datasets.load_dataset(str(ROOT / "datasets_scripts" / "jsb_chorales"), config, split=split)
            rows.select(range(count)).to_parquet(folder / config / f"{split}.parquet")
            head += f"  - split: {split}\n    path: {config}/{split}.parquet\n"
    (folder / "README.md").write_text(f"{head}---\n", encoding="utf-8")


def song(number: int) -> dict[str, Any]:
    """Return a row of caimd: tags, a theme, and four lines of its own."""
    from music_evals.annotations import DIMENSIONS

    rng = np.random.default_rng(number)
    lines = ["".join(rng.choice(list("天地人山水风月花日夜云雨江海春秋"), 9)) for _ in range(4)]
    parts = [(label, lines[at : at + 2]) for label, at in (("verse1", 0), ("chorus1", 2))]
    structure = [{"label": label, "lines": part, "rhyme": ["ccccccccR"] * 2} for label, part in parts]
    row: dict[str, Any] = {"id": f"s_{number}", "title": f"曲{number}", "artist": ["甲"], "structure": structure}
    for group, names in DIMENSIONS.items():
        tags = {name: {"tags": [f"{name}-{number}", str(number % 3)], "text": "想家"} for name in names}
        row[group] = {"overall_text": "", "dimensions": tags}
    return row


def changes_of(recipe: str, folder: Path) -> list[str]:
    """Return what makes a recipe tiny; `folder` gets the data."""
    from tests.writing import build_model

    from music_evals.models.encoders.precomputed import write_features

    kind = recipe.split("/", maxsplit=1)[0]
    changes = [f"model.{setting}" for setting in SIZES[kind]]
    songs = folder / "songs.jsonl"
    if kind in {"music_tagger", "lyric_writer"}:
        rows = [json.dumps(song(number), ensure_ascii=False) for number in range(16)]
        songs.write_text("\n".join(rows[:12]) + "\n", encoding="utf-8")
        (folder / "other.jsonl").write_text("\n".join(rows[12:]) + "\n", encoding="utf-8")
        changes += [f"data.dataset={songs}", "training.batch_size=2", "training.checkpoint_every=3"]
    if kind == "music_tagger":
        (folder / "features").mkdir()
        rng = np.random.default_rng(0)
        for number in range(12):
            values = rng.standard_normal((3, 16))
            write_features(folder / "features", f"s_{number}", values, sample_rate=44100, layer=53)
        encoder = f"data.audio={folder / 'features'}", "data.encoder={name: jukebox, size: 16}"
        return [*changes, *encoder, "training.epochs=4", "training.threads=1"]
    if kind == "lyric_writer":
        base = build_model(folder / "base", template=None, room=900)
        more = f"model.base={base}", f"data.judged={folder / 'other.jsonl'}", "training.epochs=4", "training.threads=1"
        return [*changes, *more]
    write_rows(folder / "rows")
    rolls = kind in {"bmst", "full_sequence", "style_lstm"}
    changes += [f"data.dataset={folder / 'rows'}", f"data.config={'style' if rolls else 'musib'}"]
    changes += ["training.batch_size=4", "training.epoch_contexts=40", "training.cycles=[2]", "training.threads=1"]
    per_stage = ("cycles=[2]", "batch_size=4")
    return [*changes, *(f"stages.{stage}.{setting}" for stage in stages_of(kind) for setting in per_stage)]


def stages_of(kind: str) -> tuple[str, ...]:
    from music_evals.protocols import INPAINTERS, load_plugin

    return tuple(load_plugin(INPAINTERS, kind, "model").stages) if kind in INPAINTERS else ()


class Killed(BaseException):
    """The run is killed."""


@contextmanager
def losses(kill_at: int | None = None) -> Iterator[list[float]]:
    """Yield what is learnt from, loss by loss; the run is killed before one of them."""
    import torch

    seen: list[float] = []
    backward = torch.autograd.backward

    def record(loss: Any, *more: Any, **options: Any) -> None:
        if len(seen) == kill_at:
            raise Killed
        seen.append(float(loss.detach()))
        backward(loss, *more, **options)

    torch.autograd.backward = record
    try:
        yield seen
    finally:
        torch.autograd.backward = backward


def trained(recipe: str, folder: Path) -> dict[str, Any]:
    """Return the first losses of a recipe, their number, and the size of the weights of a run killed on its way."""
    import torch
    from safetensors.torch import load_file

    from music_evals.models.training import train_from_file

    changes = changes_of(recipe, folder)
    torch.manual_seed(0)
    options: dict[str, Any] = {"changes": changes, "device": "cpu"}
    with losses() as whole:
        result = train_from_file(ROOT / "models" / recipe, out=folder / "whole", **options)
    with pytest.raises(Killed), losses(len(whole) * 3 // 4):
        train_from_file(ROOT / "models" / recipe, out=folder / "killed", **options)
    torch.manual_seed(7)  # nothing of the state at the restart may matter
    with losses() as rest:
        resumed = train_from_file(ROOT / "models" / recipe, out=folder / "killed", **options)
    assert 0 < len(rest) < len(whole), "the run goes on from its checkpoint"
    ends = [load_file(folder / "model.safetensors") for folder in (result.folder, resumed.folder)]
    assert ends[0].keys() == ends[1].keys()
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0]), "a killed run ends with equal weights"
    norm = math.sqrt(sum(float(value.double().square().sum()) for value in ends[1].values()))
    return {"losses": whole[:N_LOSSES], "n_losses": len(whole), "weights": norm}


@pytest.mark.parametrize("recipe", RECIPES)
def test_first_losses_and_last_weights_are_those_of_the_golden_file(recipe: str, tmp_path: Path) -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))[recipe]
    now = trained(recipe, tmp_path)
    assert now["n_losses"] == golden["n_losses"]
    # other processors round otherwise; where steps enlarge that, the file has what such a one computes
    recorded = [golden[name] for name in ("losses", "losses_avx512") if name in golden]
    assert any(now["losses"] == pytest.approx(losses, rel=1e-5) for losses in recorded), (now["losses"], recorded)
    assert now["weights"] == pytest.approx(golden["weights"], rel=1e-4)  # half precision


if __name__ == "__main__":
    made = {}
    for name in sys.argv[1:] or RECIPES:
        with tempfile.TemporaryDirectory() as place:
            made[name] = trained(name, Path(place))
        print(name, made[name]["n_losses"], made[name]["losses"][:2], file=sys.stderr)  # noqa: T201
    rows = (f" {json.dumps(name)}: {json.dumps(values)}" for name, values in made.items())
    GOLDEN.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
