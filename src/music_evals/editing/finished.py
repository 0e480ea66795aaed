"""Edits that another system made elsewhere: each is looked up in the manifest beside them, and made by nobody here."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from music_evals.annotations import BACKBONES, EditorInfo, EditRequest
from music_evals.audio.io import load_channels
from music_evals.csv_files import csv_rows
from music_evals.editing.system import Edited, Editor, Seeds
from music_evals.errors import InvalidInputError, NoDataError, PairCountError, UnknownNameError, UnreadableFileError
from music_evals.files import decode_text, json_lines, reading
from music_evals.symbolic.files import READERS, read_score

__all__ = ["FinishedFiles"]

_MANIFESTS = ("manifest.jsonl", "manifest.csv")


class FinishedFiles(Editor):
    """Returns the file that a manifest names for a source: so a closed system takes part in a study.

    The folder holds manifest.jsonl or manifest.csv. A row has ``id``, that of what was edited in the table of sources;
    ``estimate``, a path from the folder; and perhaps ``sha256`` of that file. ``music-evals edit`` writes such. The
    name is that of the system, in records and tables; `backbone` is one of `annotations.BACKBONES`.

    Raises
    ------
    NoDataError, UnreadableFileError
        There is no manifest, it names no edits, or it cannot be read.
    InvalidInputError, PairCountError
        A row without an id or an estimate, or an id that is there twice.
    UnknownNameError
        No such backbone.
    """

    def __init__(self, folder: str | os.PathLike[str], *, name: str, backbone: str = "not stated") -> None:
        if backbone not in BACKBONES:
            raise UnknownNameError("backbone", backbone, BACKBONES)
        self._folder, self._name, self._backbone = Path(folder), name, backbone
        place = next((self._folder / manifest for manifest in _MANIFESTS if (self._folder / manifest).is_file()), None)
        if place is None:
            raise NoDataError(f"{folder} holds neither {' nor '.join(_MANIFESTS)}, with the columns id and estimate")
        with reading(place):
            content = place.read_bytes()
        self._digest, self._rows = hashlib.sha256(content).hexdigest(), _rows(content, place)

    @property
    def info(self) -> EditorInfo:
        """What it is; the hash of its manifest is its parameter."""
        written = all(Path(row["estimate"]).suffix.lower() in READERS for row in self._rows.values())
        return EditorInfo(
            name=self._name,
            title="Finished files",
            entrances=("score",) if written else ("audio",),
            parameters={"manifest": self._digest},
            backbone=self._backbone,
        )

    def _edited(self, request: EditRequest, seeds: Seeds) -> Edited:  # noqa: ARG002 (nothing is drawn)
        row = self._rows.get(request.source_id)
        if row is None:
            raise NoDataError(f"the manifest in {self._folder} names no edit of {request.source_id!r}; add its row")
        path = self._folder / row["estimate"]
        with reading(path):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if row.get("sha256") and str(row["sha256"]).lower() != digest:
            raise UnreadableFileError(f"{path} has the sha256 {digest}, and its manifest says {row['sha256']}")
        if request.audio is None:
            return Edited(score=read_score(path))
        frames, rate = load_channels(path)
        mixed = frames.T if len(request.audio) == frames.shape[1] else frames.mean(axis=1, dtype=np.float64)[None]
        return Edited(np.ascontiguousarray(mixed, dtype=np.float32), rate)


def _rows(content: bytes, place: Path) -> dict[str, Mapping[str, Any]]:
    """Return id -> row of a manifest."""
    is_csv = place.suffix == ".csv"
    rows = csv_rows(decode_text(content, place), place) if is_csv else [row for _, row in json_lines(content, place)]
    rows_by_id: dict[str, Mapping[str, Any]] = {}
    for number, row in enumerate(rows, start=1):
        if not (row.get("id") and row.get("estimate")):
            raise InvalidInputError(f"{place}, row {number}: nothing in `id` or `estimate`; both are needed")
        if rows_by_id.setdefault(str(row["id"]), row) is not row:
            raise PairCountError(f"{place} names {str(row['id'])!r} twice; keep one of them")
    if not rows_by_id:
        raise NoDataError(f"{place} names no edits; expected rows with id and estimate")
    return rows_by_id
