"""A grid of prompts, each with one exchanged word; samples by a tiny model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.datasets.making import run_script

from music_evals.benchmark.tasks.edits.sources import expand, sources_in_files
from music_evals.datasets.audioldm2_samples import build as samples
from music_evals.datasets.edit_sources import STAND_IN_PIECES, write_sources
from music_evals.errors import NoDataError

BUILD = Path(__file__).resolve().parents[3] / "datasets_scripts" / "audioldm2_samples" / "build.py"


def test_the_grid() -> None:
    rows = samples.build_config("recipe")
    assert Counter(row["task"] for row in rows) == {"timbre": 30, "style": 30}
    assert len({(row["source_prompt"], row["target_prompt"]) for row in rows}) == 60
    for row in rows:
        assert row["before"] != row["after"]
        assert row["target_prompt"] == row["source_prompt"].replace(row["before"], row["after"])
        assert row["after"] in row["instruction"]
        assert (row["seed"], row["steps"], row["guidance"]) == (42, 100, 3.5)
        assert row["seconds"] * 100 % 32 == 0  # frames; the latents of four levels need no padding
    assert Counter(row["after"] for row in rows if row["task"] == "timbre") == dict.fromkeys(samples.INSTRUMENTS, 5)


def test_the_stand_in_is_of_our_own_pieces() -> None:
    rows = samples.build_config("stand_in")
    assert Counter(row["excerpt"] for row in rows) == dict.fromkeys(STAND_IN_PIECES, 5)
    assert all(row["seed"] is None and row["origin"] == "music_evals" for row in rows)


def test_edit_reads_what_is_attached(tmp_path: Path) -> None:
    rows = samples.build_config("recipe")
    (tmp_path / "recipe_0003.flac").write_bytes(b"sound")
    attached = samples.attach(rows, tmp_path)
    assert [row["id"] for row in attached.rows] == ["recipe_0003"]
    [source] = expand(
        sources_in_files([str(write_sources(attached, tmp_path / "list.jsonl"))]),
        None,
        generate=(),
        default="-",
        seed=0,
    )
    asked = source.instruction
    assert asked is not None
    assert asked.word_pair == ("piano", "organ")
    assert asked.target_caption() == "A dark piece of organ music."
    assert asked.intended_facets == ()
    (tmp_path / "none").mkdir()
    with pytest.raises(NoDataError, match="none of the 60 recordings"):
        samples.attach(rows, tmp_path / "none")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_a_tiny_model_makes_the_samples(tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    torch = pytest.importorskip("torch")
    pytest.importorskip("diffusers")
    from tests.editing.tiny_audioldm2 import tiny_pipeline

    from music_evals.editing.audioldm2 import AudioLDM2, make_samples

    pipeline = tiny_pipeline()
    pipeline.set_progress_bar_config(disable=True)
    model = AudioLDM2(pipeline)
    short = {"steps": 2, "seconds": 0.64, "negative_prompt": "calm"}  # the tiny tokenizers know few words
    words = ("a rock song", "a jazz song")
    recipe = samples.build_config("recipe")
    rows = [row | short | {"source_prompt": prompt} for row, prompt in zip(recipe, words, strict=False)]
    with torch.no_grad():
        first, second = make_samples(model, rows, tmp_path)
    sound, rate = soundfile.read(first)
    assert (len(sound), rate) == (10240, 16000)
    second.unlink()
    before = first.stat().st_mtime_ns
    with torch.no_grad():
        again = make_samples(model, rows, tmp_path)
    assert first.stat().st_mtime_ns == before, "what is there is left alone"
    assert [path.name for path in again] == ["recipe_0000.flac", "recipe_0001.flac"]


def test_a_sample_is_asked_for_as_its_row_says(tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    pytest.importorskip("torch")
    from music_evals.editing.audioldm2 import make_samples

    asked: list[dict[str, Any]] = []

    def pipeline(prompt: str, **options: Any) -> SimpleNamespace:
        seed = options.pop("generator").initial_seed()
        asked.append({"prompt": prompt, "seed": seed, **options})
        return SimpleNamespace(audios=[np.full(160, 0.25 * len(asked), dtype=np.float32)])

    rows = samples.build_config("recipe")[:2]
    paths = make_samples(SimpleNamespace(pipeline=pipeline), rows, tmp_path)  # type: ignore[arg-type]
    assert [one["prompt"] for one in asked] == [row["source_prompt"] for row in rows]
    assert asked[0] == {
        "prompt": "A calm piece of piano music.", "seed": 42, "negative_prompt": "low quality",
        "num_inference_steps": 100, "guidance_scale": 3.5, "audio_length_in_s": 10.24,
    }  # fmt: skip
    assert [soundfile.read(path)[0][0] for path in paths] == [0.25, 0.5]


def test_build_is_what_the_folder_holds(tmp_path: Path) -> None:
    run_script(BUILD, "--out", tmp_path)
    for path in BUILD.parent.glob("data/*/*.parquet"):
        assert (tmp_path / path.relative_to(BUILD.parent)).read_bytes() == path.read_bytes()
    assert (tmp_path / "manifest.json").read_text() == (BUILD.parent / "manifest.json").read_text()
