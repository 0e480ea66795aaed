from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import music_evals
from music_evals.errors import InvalidInputError


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
