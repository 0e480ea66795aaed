"""Modules that measure whether edits reached their targets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from music_evals.annotations import Score, targets_of, targets_to_dict
from music_evals.audio.io import Audio
from music_evals.errors import MusicEvalsError, UnsupportedTypeError, located
from music_evals.hf.audio import OFFERED, AudioMetric, read_sources
from music_evals.hf.module import GROUPS, INTERVALS

TARGET_INPUTS = f"""
Args:
    references: what was asked, one dict an item: "source", the original, {OFFERED}; and "targets", a dict of kind to
        amount or text: "tempo=1.2x; key=A minor".
    predictions: the edited music in the same order; a recording is compared with a recording, a score with a score.
    store: folder where features are kept from one call to the next.
{GROUPS}{INTERVALS}, <name>_chance, and "by_kind": kind of target -> its scores and the number of each verdict.
"""


class TargetsMetric(AudioMetric):
    """Base of the modules that compare music before and after an edit with what was asked of the edit."""

    kind = "targets"
    variants: ClassVar[tuple[str, ...]] = ()
    authors_code, arguments = "", TARGET_INPUTS

    def _encode(self, name: str, index: int, item: Any) -> str:
        if name != "references":
            return super()._encode(name, index, item)
        if not isinstance(item, Mapping) or not {"source", "targets"} <= item.keys():
            raise UnsupportedTypeError(f"{name}[{index}]: expected a dict with source and targets")
        try:
            targets = targets_to_dict(targets_of(item["targets"]))
        except MusicEvalsError as error:
            raise located(error, f"{name}[{index}]") from error
        return json.dumps({"source": super()._encode(name, index, item["source"]), "targets": targets})


def read_requests(texts: Sequence[str]) -> tuple[list[str | Audio | Score], list[dict[str, str]]]:
    """Return the originals and the targets behind the strings that a `TargetsMetric` keeps of its references."""
    rows = [json.loads(text) for text in texts]
    return read_sources([row["source"] for row in rows]), [row["targets"] for row in rows]
