"""Modules that score predicted cells of piano rolls."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import N_ROLL_PITCHES, PianoRoll, Score
from music_evals.errors import InvalidInputError, MusicEvalsError, UnsupportedTypeError, located
from music_evals.hf.module import GROUPS, INTERVALS
from music_evals.hf.symbolic import SymbolicMetric
from music_evals.symbolic.encodings.items import describe
from music_evals.symbolic.encodings.piano_rolls import piano_roll

CODEBASE = "https://github.com/s603122001/Bidirectional-Music-Style-Transformer"
CITATION = """\
@inproceedings{lu2021actions,
  title     = {Actions Speak Louder than Listening: Evaluating Music Style Transfer based on Editing Experience},
  author    = {Lu, Wei-Tsung and Wu, Meng-Hsuan and Chiu, Yuh-Ming and Su, Li},
  booktitle = {Proceedings of the 29th ACM International Conference on Multimedia},
  year      = {2021},
  doi       = {10.1145/3474085.3475529}
}
"""
OFFERED = (
    f"an array or list of lists of shape (steps, {N_ROLL_PITCHES}), a PianoRoll, a Score, a path of a MIDI, MusicXML "
    "or ABC file, or MIDI bytes"
)
INPUTS = f"""
Args:
    references: the true rolls, {OFFERED}. Arrays hold True and False, or 1 and 0; music
        is put on a grid of 8 steps a quarter, all voices merged.
    predictions: in the same order, the probability that each cell sounds, 0 to 1; or a roll, as for references.
{GROUPS}\
    average: "micro" (over the cells of all pieces, default, as published) or "macro" (over pieces).
{INTERVALS}, for each of the six scores.
"""


class CellsMetric(SymbolicMetric):
    """Base of the modules that score what a model says of the cells of a roll.

    Files and MIDI bytes are parsed when they are added, as a `SymbolicMetric` does. Music has no length beyond its last
    bar: where it is shorter than the other side, silence follows. Arrays are as long as they are.
    """

    kind = "rolls"
    variants: ClassVar[tuple[str, ...]] = ()
    paper, authors_code, arguments = CITATION, CODEBASE, INPUTS

    def _encode(self, name: str, index: int, item: Any) -> str:
        """Return one item as text: where it came from, the type of its numbers, and these, compressed, in base64."""
        try:
            parsed = self._parse(item)
            is_music = isinstance(parsed, Score)
            roll = piano_roll(parsed).cells if is_music else _array(parsed)
        except MusicEvalsError as error:
            raise located(error, f"{name}[{index}]") from error
        content = base64.b64encode(zlib.compress(roll.tobytes(), 1)).decode("ascii")
        return f"{'music' if is_music else 'array'}:{roll.dtype.str}:{content}"


class CellPairs(NamedTuple):
    """Rolls of references and what was predicted, piece by piece, of equal shapes."""

    references: list[npt.NDArray[Any]]
    estimates: list[npt.NDArray[Any]]


def read_rolls(references: Sequence[str], predictions: Sequence[str]) -> CellPairs:
    """Return the rolls behind the strings that a `CellsMetric` keeps.

    Raises
    ------
    InvalidInputError
        An array that is shorter than the other side; the message names the item.
    """
    pairs = CellPairs([], [])
    for index, texts in enumerate(zip(references, predictions, strict=True)):
        sides = [_decode(text) for text in texts]
        n_steps = max(len(roll) for roll, _ in sides)
        for roll, is_music in sides:
            if len(roll) < n_steps and not is_music:
                steps = " and ".join(str(len(side)) for side, _ in sides)
                raise InvalidInputError(
                    f"item {index}: reference and prediction have {steps} steps; give an array one row for every step "
                    "of a grid of 8 steps a quarter, up to the end of the last bar"
                )
        for rolls, (roll, _) in zip(pairs, sides, strict=True):
            rolls.append(np.pad(roll, ((0, n_steps - len(roll)), (0, 0))))
    return pairs


def _array(item: Any) -> npt.NDArray[Any]:
    if isinstance(item, PianoRoll):
        return item.cells
    if not isinstance(item, np.ndarray | list | tuple):
        raise UnsupportedTypeError(f"got {describe(item)}; offered are {OFFERED}")
    try:
        array = np.asarray(item)
    except ValueError as error:
        raise InvalidInputError(f"the rows of a roll must have {N_ROLL_PITCHES} numbers each ({error})") from error
    if array.dtype.kind not in "biuf" or array.ndim != 2 or array.shape[1] != N_ROLL_PITCHES or not len(array):
        raise InvalidInputError(
            f"expected a roll of numbers, shape (steps, {N_ROLL_PITCHES}) with at least one step, got {array.dtype} "
            f"{array.shape}"
        )
    outside = ~((array >= 0) & (array <= 1))
    if outside.any():
        raise InvalidInputError(f"a roll holds numbers from 0 to 1, got {array[outside][0]}")
    return array.astype(np.float64 if array.dtype.kind == "f" else np.bool_)


def _decode(text: str) -> tuple[npt.NDArray[Any], bool]:
    source, dtype, content = text.split(":")
    roll = np.frombuffer(zlib.decompress(base64.b64decode(content)), dtype=np.dtype(dtype))
    return roll.reshape(-1, N_ROLL_PITCHES), source == "music"
