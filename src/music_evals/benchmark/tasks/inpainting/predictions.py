"""Predictions made elsewhere: JSON lines for a dataset, or pairs of score files in a folder or a manifest."""

from __future__ import annotations

import collections
import dataclasses
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from music_evals.annotations import MUSIB_LAYOUT, Tokens
from music_evals.benchmark.inputs import SEED_END, json_lines, manifest_rows, shown_types, some
from music_evals.benchmark.scores import NOT_GIVEN
from music_evals.benchmark.tasks.inpainting.items import ItemSet
from music_evals.benchmark.tasks.inpainting.systems import System, stored_system
from music_evals.errors import (
    ContextLengthError,
    ContextMismatchWarning,
    InvalidInputError,
    MusicEvalsError,
    NoDataError,
    PairCountError,
)
from music_evals.files import item_name
from music_evals.locations import location
from music_evals.symbolic import files, noteseq
from music_evals.symbolic.contexts import Measures
from music_evals.symbolic.encodings import items

SIDES = ("reference", "prediction")

OR_FAILED = "or count the items without one as failed, with `allow_missing=True`"


@dataclasses.dataclass(frozen=True)
class _Pair:
    item: str
    song: str
    reference: Path
    prediction: Path | None  # None where it is missing and may be


def load_predictions(
    path: str | os.PathLike[str], judged: ItemSet, known: Iterable[str] = (), *, allow_missing: bool = False
) -> list[System]:
    """Read predictions from JSON lines; with `allow_missing` an item without one of each seed is a failure."""
    # Each line is an object with ``item_id``, ``middle`` (96 NoteSeq tokens 0..129) and, where there are several,
    # ``system`` (the file's stem by default) and ``seed`` (0 by default).
    place = location(path)
    index = {item_name(item): row for row, item in enumerate(judged.item_ids)}
    ignored = {*map(item_name, known)} - index.keys()
    unknown: list[str] = []
    middles: dict[tuple[str, int], dict[int, Tokens]] = collections.defaultdict(dict)
    for number, line in json_lines(place):
        where = f"{place}, line {number}"
        item, system, seed, middle = _read_line(line, where, place.stem)
        if item not in index:
            unknown.extend([] if item in ignored else [item])
            continue
        by_row = middles[system, seed]
        if index[item] in by_row:
            raise PairCountError(
                f"{where}: a second prediction for item {item!r} of system {system!r} with seed {seed}; keep one"
            )
        by_row[index[item]] = middle
    if unknown:
        raise PairCountError(
            f"{place}: {some(unknown)} not in {judged.dataset}, split {judged.split}; check dataset, config and split"
        )
    if not middles:
        raise NoDataError(f"{place} holds no prediction for the judged items")
    stored: dict[str, dict[int, Tokens]] = collections.defaultdict(dict)
    failures: dict[str, dict[str, str]] = collections.defaultdict(dict)
    for (system, seed), by_row in middles.items():
        missing = [item for row, item in enumerate(judged.item_ids) if row not in by_row]
        if missing and not allow_missing:
            raise PairCountError(
                f"{place}: system {system!r}, seed {seed}: no prediction for {len(missing)} of {len(judged)} items, "
                f"{some(missing)}; give one of each item, {OR_FAILED}"
            )
        # an item counts where every seed has it, so a seed without it fails it whole
        failures[system] |= dict.fromkeys(missing, NOT_GIVEN)
        stored[system][seed] = np.zeros((len(judged), MUSIB_LAYOUT.middle_steps), dtype=np.uint8)
        stored[system][seed][list(by_row)] = list(by_row.values())
    return [stored_system(name, by_seed, failures[name]) for name, by_seed in stored.items()]


def _read_line(row: Mapping[str, Any], where: str, stem: str) -> tuple[str, str, int, Tokens]:
    item, middle = row.get("item_id"), row.get("middle")
    system, seed = row.get("system", stem), row.get("seed", 0)
    if (
        not isinstance(item, str)
        or not isinstance(middle, list)
        or not isinstance(system, str)
        or type(seed) is not int
    ):
        raise InvalidInputError(
            f'{where}: expected {{"item_id": text, "middle": [{MUSIB_LAYOUT.middle_steps} tokens]}} and, where there '
            f'are several, "system": text and "seed": number; got {shown_types(row)}'
        )
    if not system.strip() or not 0 <= seed < SEED_END:
        raise InvalidInputError(
            f"{where}: expected a system name with a letter in it and a seed of 0..2**63 - 1; got {system!r}, {seed}"
        )
    if len(middle) != MUSIB_LAYOUT.middle_steps:
        raise ContextLengthError(
            f"{where}: the middle of {item!r} has {len(middle)} tokens, expected {MUSIB_LAYOUT.middle_steps}"
        )
    if not all(type(token) is int for token in middle):
        raise InvalidInputError(f"{where}: the middle of {item!r} holds other things than whole numbers")
    try:
        return item_name(item), system, seed, noteseq.check_tokens(middle)
    except MusicEvalsError as error:
        raise type(error)(f"{where}: {error}") from error


def load_pairs(
    path: str | os.PathLike[str],
    *,
    allow_missing: bool = False,
    voice: str | None = None,
    highest: bool = False,
    measures: Measures = "notated",
) -> tuple[ItemSet, System]:
    """Read pairs of score files; with `allow_missing` a reference without a prediction is a failure.

    `voice` and `highest` say what is taken of both files of a pair, as of `symbolic.contexts.pick_voice`; `measures`
    what becomes of a file in another meter than 4/4, as of `symbolic.encodings.items.read_tokens`.
    """
    taken = {"voice": voice, "highest": highest, "measures": measures}
    path = Path(path)
    read_pairs = _pairs_in_folder if path.is_dir() else _pairs_in_manifest
    pairs = read_pairs(path, allow_missing=allow_missing)
    if not pairs:
        raise NoDataError(
            f"{path} holds no pairs; expected sub-folders reference and prediction with files of the same names, or "
            f"files named <name>_reference.mid and <name>_prediction.mid"
        )
    sides = [pair.reference for pair in pairs], [pair.prediction for pair in pairs]
    # the parsers are native code: a file that kills one must not take the other files down
    read = files.read_many([path for side in sides for path in side if path is not None], reader=files.read_score)
    references, predictions = (_read_side(side, read, taken, whole=side is sides[0]) for side in sides)
    readable = [row for row, tokens in enumerate(references) if not isinstance(tokens, str)]
    judged = ItemSet(
        dataset=path.name,
        config=None,
        split="pairs",
        item_ids=tuple(pairs[row].item for row in readable),
        songs=tuple(pairs[row].song for row in readable),
        contexts=np.array([references[row] for row in readable], dtype=np.uint8).reshape(-1, MUSIB_LAYOUT.n_steps),
        failures={
            pair.item: outcome for pair, outcome in zip(pairs, references, strict=True) if isinstance(outcome, str)
        },
    )
    failures: dict[str, str] = {}
    differing: list[str] = []
    middles = np.zeros((len(readable), MUSIB_LAYOUT.middle_steps), dtype=np.uint8)  # that of a failure is never scored
    for place, (row, context) in enumerate(zip(readable, judged.contexts, strict=True)):
        prediction = predictions[row]
        if isinstance(prediction, str):
            failures[pairs[row].item] = prediction
            continue
        whole = len(prediction) == MUSIB_LAYOUT.n_steps
        middles[place] = prediction[MUSIB_LAYOUT.middle] if whole else prediction
        parts = (MUSIB_LAYOUT.past, MUSIB_LAYOUT.future) if whole else ()
        if not all(np.array_equal(context[part], prediction[part]) for part in parts):
            differing.append(pairs[row].item)
    if differing:
        msg = (
            f"{len(differing)} predictions came with a context that differs from the reference's, which is used: "
            f"{some(differing)}"
        )
        warnings.warn(msg, ContextMismatchWarning, stacklevel=2)
    return judged, stored_system("prediction", {0: middles}, failures)


def _read_side(paths: Sequence[Path | None], read: Iterator[Any], how: Mapping[str, Any], *, whole: bool) -> list[Any]:
    """Return the tokens of each file, the next ones that are read, or the error message in their place."""
    outcomes: list[Tokens | str] = [NOT_GIVEN] * len(paths)
    given = [place for place, path in enumerate(paths) if path is not None]
    for place, (path, result) in zip(given, read, strict=False):
        try:
            if isinstance(result, MusicEvalsError):
                raise result
            outcomes[place] = items.read_tokens(result, whole=whole, **how)
        except MusicEvalsError as error:
            outcomes[place] = f"{type(error).__name__}: {path.name}: {error}"
    return outcomes


def _pairs_in_folder(folder: Path, *, allow_missing: bool) -> list[_Pair]:
    reference, prediction = (_files_of_side(folder, side) for side in SIDES)
    missing = [] if allow_missing else sorted(reference.keys() - prediction.keys())
    odd = [f"{name} (no prediction)" for name in missing]
    odd += [f"{name} (no reference)" for name in sorted(prediction.keys() - reference.keys())]
    if odd:
        advice = f"; {len(missing)} have no prediction: give it, {OR_FAILED}" if missing else ""
        raise PairCountError(
            f"{folder}: {len(reference)} references and {len(prediction)} predictions do not pair up: {some(odd)}"
            f"{advice}"
        )
    return [_Pair(name, name, reference[name], prediction.get(name)) for name in sorted(reference)]


def _files_of_side(folder: Path, side: str) -> dict[str, Path]:
    """Return item id -> file of the references or of the predictions."""
    inside = folder / side
    if inside.is_dir():
        named = [(item_name(file.relative_to(inside).with_suffix("")), file) for file in sorted(inside.rglob("*"))]
    else:
        beside = [file for file in sorted(folder.glob("*")) if file.stem.endswith(f"_{side}")]
        named = [(item_name(file.stem.removesuffix(f"_{side}")), file) for file in beside]
    by_item: dict[str, Path] = {}
    for name, file in named:
        if not file.is_file() or file.suffix.lower() not in files.READERS:
            continue
        if name in by_item:
            raise PairCountError(
                f"{folder}: {file.name} and {by_item[name].name} are both the {side} of {name!r}; keep one of them"
            )
        by_item[name] = file
    return by_item


def _pairs_in_manifest(path: Path, *, allow_missing: bool) -> list[_Pair]:
    pairs = []
    for number, row in enumerate(manifest_rows(path), start=1):
        reference, prediction = (row.get(side) for side in SIDES)
        if not (isinstance(reference, str) and reference and isinstance(prediction, str)):
            raise InvalidInputError(
                f"{path}, row {number}: expected the columns reference and prediction, got {shown_types(row)}"
            )
        if not prediction and not allow_missing:
            raise PairCountError(f"{path}, row {number}: no prediction for {reference}; give one, {OR_FAILED}")
        item = str(row.get("item_id") or Path(reference).with_suffix(""))
        song = str(row.get("song") or item)
        pairs.append(_Pair(item, song, path.parent / reference, path.parent / prediction if prediction else None))
    return pairs
