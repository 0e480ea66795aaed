"""Modules that compare symbolic music: contexts, and what fills their middle."""

from __future__ import annotations

import base64
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from music_evals.annotations import MUSIB_LAYOUT, Score, Tokens
from music_evals.errors import ContextMismatchWarning, MusicEvalsError, located, worded
from music_evals.hf.module import GROUPS, INTERVALS, PairModule
from music_evals.metrics.arrays import VARIANTS
from music_evals.symbolic.encodings.items import OFFERED, read_tokens
from music_evals.symbolic.files import READERS
from music_evals.symbolic.files import read_score as read_file

if TYPE_CHECKING:
    from music_evals.processes import ReaderProcess

CODEBASE = "https://github.com/maranedah/music_inpainting_benchmark"
CITATION = """\
@article{araneda2023musib,
  title   = {{MUSIB}: musical score inpainting benchmark},
  author  = {Araneda-Hernandez, M. and Bravo-Marquez, F. and Parra, D. and C{\\'a}diz, R. F.},
  journal = {EURASIP Journal on Audio, Speech, and Music Processing},
  volume  = {2023},
  number  = {19},
  year    = {2023},
  doi     = {10.1186/s13636-023-00279-6}
}
"""
SYMBOLIC_INPUTS = f"""
Args:
    references: the true contexts, 6 + 4 + 6 measures of 24 steps each. {OFFERED[0].upper()}{OFFERED[1:]}.
    predictions: in the same order, the same kinds of items: the 4 measures of the middle (96 steps), or a whole context
        (384 steps) of which only the middle is read; the context always comes from the reference. Files and notes that
        end within 4 measures are middles, those that reach into the future are contexts. Those whose time signatures
        are not all of four quarters, as 4/4, are refused; tokens and rows of steps have none.
{GROUPS}\
    variant, also the config name: "corrected" (default), "official" (the authors' code) or "paper" (their text).
    average: for means, "macro" (over items, default) or "micro" (over notes).
    base: of divergences, "nats" (default) or "bits".
    n_resamples: bootstrap resamples of divergences, default 1000; 0 leaves interval and noise floor out.
    seed: of both, default 0. A module without a divergence refuses base, n_resamples and seed.
{INTERVALS}
    and, for a divergence, <name>_null, its noise floor.
"""


class SymbolicMetric(PairModule):
    """Base of the modules that compare symbolic music: references are contexts, predictions fill their middle.

    Both features are strings; `read_pairs` turns them back into tokens. Files and MIDI bytes are parsed when they are
    added, in a process of their own: a file that kills the parser is an error of its item. That process starts with the
    first file (about half a second) and ends with `compute`; other items need none.
    """

    kind = "contexts"
    variants: ClassVar[tuple[str, ...]] = VARIANTS
    paper, authors_code, arguments = CITATION, CODEBASE, SYMBOLIC_INPUTS

    parser: ReaderProcess[Score] | None = None
    """Of files, while some are being added."""

    def _encode(self, name: str, index: int, item: Any) -> str:
        """Return one item as text: its layout, then its tokens in base64."""
        try:
            tokens = read_tokens(self._parse(item), whole=name == "references")
        except MusicEvalsError as error:
            where = f"{name}[{index}]"
            if error.kind == "meter":  # what to do about it is said in the words of a module, which has no `measures`
                reason = str(error).partition("; ")[0]
                advice = "choose whole measures of 4/4, or give the steps as tokens or rows, which have no meter"
                raise worded(type(error), f"{where}: {reason}; {advice}", vars(error)) from error
            raise located(error, where) from error
        layout = "context" if len(tokens) == MUSIB_LAYOUT.n_steps else "middle"
        return f"{layout}:{base64.b64encode(tokens.tobytes()).decode('ascii')}"

    def _parse(self, item: Any) -> Any:
        """Return the score of a file or of MIDI bytes, alone or as a part of a context; other items as they are."""
        if isinstance(item, Mapping):
            return {key: self._parse(part) for key, part in item.items()}
        if isinstance(item, str | os.PathLike):
            if Path(item).suffix.lower() not in READERS:
                return item  # refused by its suffix, without a parser
            item = Path(item).absolute()  # the other process may have started in another folder
        elif isinstance(item, bytes | bytearray | memoryview):
            item = bytes(item)
        else:
            return item
        if self.parser is None:
            from music_evals.processes import ReaderProcess

            self.parser = ReaderProcess(read_file)
        parsed = self.parser.read(item)
        if isinstance(parsed, MusicEvalsError):
            raise parsed
        return parsed

    def _release(self) -> None:
        if self.parser is not None:
            self.parser.close()
        self.parser = None


class SymbolicPairs(NamedTuple):
    """Tokens of references and predictions, item by item."""

    contexts: Tokens
    """Whole true contexts, shape (n, 384)."""
    middles: Tokens
    """Predicted middles, shape (n, 96)."""


def read_pairs(references: Sequence[str], predictions: Sequence[str]) -> SymbolicPairs:
    """Return the tokens behind the strings that a `SymbolicMetric` keeps.

    Warns
    -----
    ContextMismatchWarning
        Predictions came with a context that is not the reference's; the reference's is used.
    """
    contexts = np.stack([_decode(text) for text in references])
    middles = np.empty((len(contexts), MUSIB_LAYOUT.middle_steps), dtype=np.uint8)
    differing = []
    for i, text in enumerate(predictions):
        tokens = _decode(text)
        if len(tokens) == MUSIB_LAYOUT.n_steps:
            outside = np.delete(tokens != contexts[i], MUSIB_LAYOUT.middle)
            differing += [i] if outside.any() else []
            tokens = tokens[MUSIB_LAYOUT.middle]
        middles[i] = tokens
    if differing:
        msg = (
            f"{len(differing)} of {len(contexts)} predictions, the first at index {differing[0]}, came with a past or "
            "future that differs from the reference's; only their middle was read"
        )
        warnings.warn(msg, ContextMismatchWarning, stacklevel=5)  # the caller of compute
    return SymbolicPairs(contexts, middles)


def _decode(text: str) -> Tokens:
    return np.frombuffer(base64.b64decode(text.partition(":")[2]), dtype=np.uint8)
