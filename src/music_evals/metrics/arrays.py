"""What the metrics on NoteSeq arrays share: names of the variants, border checks, passes over many items."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import MUSIB_LAYOUT, Tokens, check_tokens
from music_evals.errors import (
    ContextLengthError,
    InvalidTokensError,
    PairCountError,
    UndefinedMetricWarning,
    UnknownNameError,
)

FloatArray = npt.NDArray[np.float64]  # scores
IntArray = npt.NDArray[np.int64]  # counts

VARIANTS: Final = ("corrected", "official", "paper")
"""``corrected``: ours. ``official``: the authors' code, quirks included. ``paper``: the text where it differs."""

MUSECPEVAL: Final = "musecpeval-0.3"
"""The package `musecpeval` 0.3.0, which the authors of MuseCPBench published after their code at 9df5a46."""

OF_AUTHORS: Final = ("official", MUSECPEVAL)  # of music context preservation
PRESERVATION_VARIANTS: Final = (*VARIANTS, MUSECPEVAL)  # what its metrics take
RELEASE_EPSILON: Final = 1e-8  # what the package adds to every norm that it divides by

# Rows of one chunk: its tokens and masks stay in the cache of one core.
CHUNK_ROWS = 4096
# numpy gives up the lock in its loops, so two threads are worth having; more would wait for memory.
MAX_THREADS = 2


def check_variant(variant: str, known: Collection[str] = VARIANTS) -> str:
    """Return the name of a variant, or raise `UnknownNameError` with the nearest one."""
    if variant not in known:
        raise UnknownNameError("variant", variant, known)
    return variant


def cosine_of_means(reference: npt.NDArray[np.floating[Any]], estimate: npt.NDArray[np.floating[Any]]) -> float:
    """Return the cosine of the mean frames of two arrays of shape (n, d) as musecpeval 0.3.0 does; 0 without any."""
    if not len(reference) or not len(estimate):
        return 0.0
    means = [np.asarray(frames.mean(axis=0), np.float64) for frames in (reference, estimate)]
    norms = [np.linalg.norm(mean) + RELEASE_EPSILON for mean in means]
    return float(means[0] @ means[1] / (norms[0] * norms[1]))


def check_pairs(reference: npt.ArrayLike, estimate: npt.ArrayLike) -> tuple[Tokens, Tokens, bool]:
    """Return two sets of sequences as (n, steps), and whether one sequence was given instead of a set."""
    first, second = check_tokens(reference), check_tokens(estimate)
    single = first.ndim == 1
    for tokens in (first, second):
        if tokens.ndim not in {1, 2} or (tokens.ndim == 1) != single:
            raise InvalidTokensError(
                f"expected two arrays of shape (steps,) or two of (n, steps), got {first.shape} and {second.shape}"
            )
    first, second = np.atleast_2d(first), np.atleast_2d(second)
    check_same_count(first, second)
    if first.shape[1] != second.shape[1] or not first.shape[1]:
        raise ContextLengthError(
            f"reference and estimate must have the same number of steps, got {first.shape[1]} and {second.shape[1]}"
        )
    return first, second, single


def check_contexts(contexts: npt.ArrayLike) -> Tokens:
    """Return whole contexts as uint8 of shape (n, 384)."""
    return _check_shape(contexts, MUSIB_LAYOUT.n_steps, "contexts, past + middle + future")


def check_middles(middles: npt.ArrayLike) -> Tokens:
    """Return middles as uint8 of shape (n, 96)."""
    return _check_shape(middles, MUSIB_LAYOUT.middle_steps, "middles")


def _check_shape(tokens: npt.ArrayLike, n_steps: int, noun: str) -> Tokens:
    checked = check_tokens(tokens)
    if checked.ndim != 2 or checked.shape[1] != n_steps:
        raise ContextLengthError(f"expected {noun}, of shape (n, {n_steps}), got {checked.shape}")
    return checked


def check_same_count(reference: npt.NDArray[np.generic], estimate: npt.NDArray[np.generic]) -> None:
    """Raise `PairCountError` unless both sides have the same number of items."""
    if len(reference) != len(estimate):
        raise PairCountError(
            f"{len(reference)} references and {len(estimate)} estimates do not pair up; give one of each an item"
        )


def warn_undefined(name: str, values: FloatArray, why: str, *, stacklevel: int = 3) -> None:
    """Warn the caller of a public function where values are NaN."""
    undefined = int(np.isnan(values).sum())
    if undefined:
        msg = f"{name} is undefined for {undefined} of {values.size} items, which are NaN: {why}"
        warnings.warn(msg, UndefinedMetricWarning, stacklevel=stacklevel)


def by_chunks(kernel: Callable[..., FloatArray], *arrays: Tokens) -> FloatArray:
    """Apply a kernel to slices of rows and put its results side by side."""
    n = len(arrays[0])
    if n <= CHUNK_ROWS:
        return kernel(*arrays)
    slices = [slice(start, start + CHUNK_ROWS) for start in range(0, n, CHUNK_ROWS)]

    def work(rows: slice) -> FloatArray:
        return kernel(*(array[rows] for array in arrays))

    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=min(MAX_THREADS, os.cpu_count() or 1)) as pool:
        return np.concatenate(list(pool.map(work, slices)), axis=1)


def undefined(name: str, why: str, *, stacklevel: int = 3) -> float:
    """Return NaN, with an `UndefinedMetricWarning` at the caller of the metric that says why."""
    msg = f"{name} is undefined: {why}"
    warnings.warn(msg, UndefinedMetricWarning, stacklevel=stacklevel)
    return float("nan")
