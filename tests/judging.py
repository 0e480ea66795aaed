"""Judging in tests: systems on items into a record file, in one call."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from music_evals.benchmark.run import Settings, record
from music_evals.benchmark.tasks.inpainting.items import ItemSet
from music_evals.benchmark.tasks.inpainting.runner import InpaintingJob
from music_evals.benchmark.tasks.inpainting.systems import System

__all__ = ["judge_items"]


def judge_items(
    items: ItemSet,
    systems: Sequence[System],
    path: str | os.PathLike[str],
    *,
    seeds: Sequence[int] = (0,),
    variant: str = "corrected",
    protocol: str | None = None,
    extensions: Sequence[str] = (),
    progress: Any = None,
    **settings: Any,
) -> list[dict[str, Any]]:
    """Judge systems on items, and return the records."""
    job = InpaintingJob(items, systems, variant, seeds, protocol, extensions=extensions)
    return record(job, Path(path), Settings(Path(path).parent, **settings), progress=progress)
