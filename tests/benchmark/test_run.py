from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path
from typing import Any

import pytest

import music_evals
from music_evals.benchmark.run import Settings
from music_evals.benchmark.tasks.preservation.task import Preservation
from music_evals.errors import InvalidInputError, MissingBackendError, UnknownNameError


@pytest.mark.parametrize(
    ("task", "name", "value", "others"),
    [
        ("inpainting", "models", "models/anticipation_rnn", {"dataset": "jsb_chorales"}),
        ("preservation", "estimates", Path("edited"), {"reference": "originals"}),
        ("preservation", "estimates", {"zeta": "out/zeta"}, {"reference": "originals"}),
        ("lyrics", "generated", "mine=texts", {"reference": "patterns"}),
        ("lyrics", "predictions", "mine=lyrics.jsonl", {"dataset": "caimd"}),
        ("descriptions", "predictions", "mine=tags.jsonl", {"dataset": "caimd"}),
        ("lyric_writing", "models", "Qwen/Qwen3-0.6B", {"dataset": "caimd"}),
    ],
)
def test_one_name_is_never_read_letter_by_letter(
    tmp_path: Path, task: str, name: str, value: Any, others: dict[str, str]
) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(f"`{name}` must be a list, of one also, got {value!r}")):
        music_evals.run(task, tmp_path / "out", **{name: value}, **others)


def test_names_with_commas_may_be_a_list(tmp_path: Path) -> None:
    class Kept(Preservation):
        def run(self, settings: Any, **_: Any) -> Any:
            return settings.measures.metrics

    files = {"reference": tmp_path, "estimates": ["mine=there"]}
    assert (
        music_evals.run(Kept(), tmp_path / "out", metrics=["delta_bpm", "motif_recall"], **files)
        == (music_evals.run(Kept(), tmp_path / "out", metrics="delta_bpm,motif_recall", **files))
        == ("delta_bpm", "motif_recall")
    )


def test_an_engine_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownNameError, match="unknown engine 'rays'; did you mean ray"):
        Settings(tmp_path, engine="rays")
    there = importlib.metadata.distributions
    monkeypatch.setattr(
        importlib.metadata, "distributions", lambda *, name: iter(()) if name == "ray" else there(name=name)
    )
    with pytest.raises(MissingBackendError, match="the engine ray needs the package 'ray'") as found:
        Settings(tmp_path, engine="ray")
    assert found.value.extra == "scale"
