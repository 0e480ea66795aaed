"""RefinPaint: some bars of written music are made anew in rounds, those notes kept that fit best.

In each round a feedback network tells how likely every token is real; the best are kept, more of them from round to
round, and an inpainting network draws the others anew. Clean room: tokens, networks and loop were written from a
description; the weights of the authors (CC BY-NC-SA 4.0) are supplied by the user.

``variant="official"`` is the authors' program at 1f3e6b2, draw by draw (`benchmarks/parity`, from whose table the sizes
are). ``"corrected"``, the default, deviates:

* only tokens are drawn that can stand where they are drawn (42 of 347 tokens say nothing in the end, theirs 136);
* the last two of the tokens that a round does not keep are drawn like the others (150 in the first round, theirs 148);
* all voices but drums are merged; theirs is the instrument alone whose note ends first (3 notes of a trio, theirs 2);
* bars reach to the end of the last note, theirs to that of the last onset (3 for a note of ten quarters, theirs 1);
* bars that are not 4/4 are refused, theirs are counted in 4/4.

Both deviate in what is done to files. Their merge takes the ticks of any file for 480 a quarter, so that in one of 960
all comes twice as late; they write no tempo, which means 120; they stop at more than 512 tokens, and where the last bar
is named. Here ticks, tempi and signatures of the source stay, and longer pieces are seen through a window.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import EditorInfo, EditRequest, Score, Weights
from music_evals.annotations.edits import MOST_CONFIDENCE
from music_evals.editing import refinpaint_tokens as codec
from music_evals.editing.memory import weight_bytes
from music_evals.editing.system import Edited, Editor, Seeds
from music_evals.errors import ModelUnavailableError, UnknownNameError, importing
from music_evals.protocols.settings import check_parameters

__all__ = ["RefinPaint", "kept_count", "written_by_tokens"]

SYSTEMS = {"refinpaint": "RefinPaint"}

VARIANTS: Final = ("corrected", "official")

Tokens = npt.NDArray[np.int64]


class Window(NamedTuple):
    """The tokens that the networks see, and which of them may change."""

    tokens: Tokens
    editable: npt.NDArray[np.bool_]
    start: int  # where the window begins in the piece


def kept_count(n: int, round_: int) -> int:
    """Return how many of n tokens are kept in a round, which are counted down to 1.

    It is ceil(n cos(i pi / 22)), a seventh of them in round 10 and nearly all in round 1, as the authors' code rounds
    it: as a rate that is multiplied with n again, where all of them would be kept with 511 of 512.
    """
    n_kept = math.ceil(math.cos(round_ / (MOST_CONFIDENCE + 1) * math.pi / 2) * n)
    return int((n_kept / n if n_kept < n else 1 - 1 / 512) * n) if n else 0


def written_by_tokens(score: Score, *, variant: str = "corrected") -> Score:
    """Return a score as its tokens say it: what an edit must be compared with, so that rounding is no damage."""
    official = variant == "official"
    return codec.decode(codec.encode(score, official=official).tokens, score, official=official)[0]


class RefinPaint(Editor):
    """Makes bars of a score anew by the networks of `refinpaint_networks`.

    A token is drawn from the smallest set with the probability `top_p` (0.95, authors' code). The variant
    ``"official"`` has all behaviours of the authors' code, see above. `from_pretrained` loads the model; without one it
    is a `ModelUnavailableError`.
    """

    licence = codec.LICENCE
    BOUNDS: ClassVar = {"top_p": (0.001, 1)}

    def __init__(
        self, model: Any = None, *, top_p: float = 0.95, variant: str = "corrected", weights: Weights | None = None
    ) -> None:
        if model is None:
            raise ModelUnavailableError(
                f"refinpaint needs weights: {codec.PUBLISHED_AT}, licence {codec.LICENCE}, not for commercial use; put "
                "its ten files into a folder, convert them (`music-evals convert FOLDER`), and name the folder with "
                "`weights`"
            )
        check_parameters(type(self), {"top_p": top_p})
        if variant not in VARIANTS:
            raise UnknownNameError("variant", variant, VARIANTS)
        self._model, self._weights = model, weights
        self._top_p, self._variant = top_p, variant
        self._official = variant == "official"

    @classmethod
    def from_pretrained(
        cls, source: str | os.PathLike[str], *, revision: str | None = None, device: str = "cpu", **parameters: Any
    ) -> RefinPaint:
        """Load the networks from a folder, or from the Hub at a commit.

        A folder holds config.json and model.safetensors as `save_pretrained` writes them, or what `conversion.convert`
        makes of the published parts. Every tensor must be there, none may be left over.
        """
        with importing("editing", "RefinPaint"):
            from music_evals.editing.refinpaint_networks import load
        networks = load(Path(source) if Path(source).is_dir() else os.fspath(source), revision)
        where = Weights(os.fspath(source), revision or "", codec.LICENCE)
        return cls(networks.to(device), weights=where, **parameters)

    def memory(self, seconds: float) -> tuple[int, int]:  # noqa: ARG002 (it sees so many tokens and no more)
        """Return the bytes of the weights, and about how many an edit takes besides."""
        inpainter = self._model.inpainter
        rows, width = inpainter.position.weight.shape
        vectors = 4 * (len(inpainter.decoder) + len(inpainter.encoder)) * rows * width
        maps = inpainter.n_heads * rows * rows
        return weight_bytes(self._model), 4 * (vectors + maps)

    def network_calls(self, seconds: float) -> int:  # noqa: ARG002 (it sees so many tokens and no more)
        """Return how often an edit calls a network at most: in each round once, and once a token that is redrawn."""
        return MOST_CONFIDENCE * (1 + int(self._model.max_tokens))

    @property
    def info(self) -> EditorInfo:
        """What it is, what it needs, and the parameters that it was made with."""
        return EditorInfo(
            name="refinpaint",
            title="RefinPaint",
            paper=(
                "Ramoneda et al. (2024), Music proofreading with RefinPaint: where and how to modify compositions "
                "given context"
            ),
            weights=(self._weights,) if self._weights else (),
            entrances=("score",),
            needs=("bars", "confidence"),
            deterministic=False,
            parameters={"top_p": self._top_p, "variant": self._variant},
            backbone="refinement",
        )

    def supports(self, request: EditRequest) -> str:
        """Return why it cannot follow a request, in a sentence that says what to do; empty if it can."""
        score, bars = request.score, request.instruction.bars
        if why := super().supports(request):
            return why
        assert score is not None and bars is not None  # noqa: PT018 (the base class asks for both)
        other = next((signature for signature in score.time_signatures if signature.quarters != 4), None)
        if other and not self._official:
            return (
                f"refinpaint knows bars of 4/4, and the source has {other.numerator}/{other.denominator}; count its "
                "bars in 4/4 and set `variant='official'`, or choose another piece"
            )
        encoded = codec.encode(score, official=self._official)
        if bars[1] > len(encoded.bars):
            return f"bars {bars[0]}:{bars[1]} were asked for, and the source has {len(encoded.bars)}; name bars it has"
        ends = [*encoded.bars.tolist(), len(encoded.tokens)]
        first, end = ends[bars[0]], ends[bars[1]]
        if end - first > self._model.max_tokens:
            return (
                f"bars {bars[0]}:{bars[1]} have {end - first} tokens, and refinpaint sees {self._model.max_tokens}; "
                "name fewer bars"
            )
        return ""

    def _edited(self, request: EditRequest, seeds: Seeds) -> Edited:
        import torch

        score, instruction = request.score, request.instruction
        assert score is not None and instruction.bars is not None and instruction.confidence is not None  # noqa: PT018
        encoded = codec.encode(score, official=self._official)
        window = _window(encoded, instruction.bars, self._model.max_tokens)
        warnings = _warnings(encoded, window, official=self._official)
        generator = torch.Generator().manual_seed(seeds.item)
        with torch.no_grad():
            refined = self._refined(window, instruction.confidence, generator)
        tokens = encoded.tokens.copy()
        tokens[window.start : window.start + len(window.tokens)] = refined
        edited, dropped = codec.decode(tokens, score, official=self._official)
        if dropped:
            warnings.append(f"{dropped} of {len(tokens)} tokens say nothing where they stand and were dropped")
        return Edited(score=edited, warnings=tuple(warnings))

    def _refined(self, window: Window, confidence: int, generator: Any) -> Tokens:
        """Return the tokens of a window after 10 - confidence rounds."""
        import torch

        from music_evals.editing.refinpaint_networks import resample

        device = next(self._model.parameters()).device
        n = len(window.tokens)
        empty = self._model.max_tokens - n
        tokens = torch.from_numpy(np.pad(window.tokens, (0, empty), constant_values=codec.PAD)).to(device)
        editable = torch.from_numpy(np.pad(window.editable, (0, empty))).to(device)
        places = np.flatnonzero(window.editable)
        for round_ in range(MOST_CONFIDENCE - confidence, 0, -1):
            scores = self._model.feedback(tokens, editable).cpu().numpy()[places]
            order = np.argsort(-scores, kind="stable")
            redrawn = places[order[kept_count(len(places), round_) :]]
            resample_mask = torch.zeros_like(editable)
            resample_mask[torch.from_numpy(redrawn).to(device)] = True
            tokens = resample(
                self._model.inpainter,
                tokens,
                resample_mask,
                top_p=self._top_p,
                generator=generator,
                grammar=not self._official,
                skip_last_two=self._official,
            )
        refined: Tokens = tokens[:n].cpu().numpy()
        return refined


def _window(encoded: codec.Encoded, bars: tuple[int, int], most: int) -> Window:
    """Return whole bars around those that may change, as many as fit, as even on both sides as the piece allows."""
    ends = [*encoded.bars.tolist(), len(encoded.tokens)]
    first, last = bars
    growing = True
    while growing:
        growing = False
        for step, bar in sorted(((-1, first - 1), (1, last + 1)), key=lambda side: abs(side[1] - sum(bars) / 2)):
            low, high = (bar, last) if step < 0 else (first, bar)
            if low >= 0 and high < len(ends) and ends[high] - ends[low] <= most:
                first, last, growing = low, high, True
                break
    start, end = ends[first], ends[last]
    tokens = encoded.tokens[start:end]
    place = np.arange(start, end)
    inside = (place >= ends[bars[0]]) & (place < ends[bars[1]])
    return Window(tokens, inside & (tokens != codec.BAR), start)


def _warnings(encoded: codec.Encoded, window: Window, *, official: bool) -> list[str]:
    warnings = []
    if encoded.n_left_out:
        whose = "other instruments than the first" if official else "drums"
        warnings.append(f"{encoded.n_left_out} of {encoded.n_notes} notes are of {whose} and were left out")
    if encoded.n_outside:
        warnings.append(f"{encoded.n_outside} of {encoded.n_notes} notes lie below A0 or above C8 and were left out")
    if len(window.tokens) < len(encoded.tokens):
        end = window.start + len(window.tokens)
        warnings.append(f"the networks saw tokens {window.start}:{end} of {len(encoded.tokens)}")
    if not window.editable.any():
        warnings.append("the bars hold no notes, so that nothing can change")
    return warnings
