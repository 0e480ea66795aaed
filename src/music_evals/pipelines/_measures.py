"""Which function computes which metric of music context preservation, and from which features."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from music_evals.errors import UnknownNameError
from music_evals.metrics.scales import COMPANIONS, PRESERVATION_METRICS, Scale

__all__ = ["FACETS", "facet_companions", "measure", "scale_of", "select_companions", "select_metrics"]


class _Measure(NamedTuple):
    """A function of `metrics` with the options that make a metric of it."""

    module: str
    function: str
    options: Mapping[str, Any]


def _facets() -> dict[str, tuple[str, ...]]:
    facets: dict[str, tuple[str, ...]] = {}
    for name, scale in PRESERVATION_METRICS.items():
        facets[scale.facet] = (*facets.get(scale.facet, ()), name)
    return facets


FACETS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(_facets())
"""Facet -> its metrics, in the order of the results."""

_NAMED: Final[Mapping[str, _Measure]] = MappingProxyType(
    {
        "chroma_dtw_centred_transposed": _Measure(
            "harmony", "chroma_dtw_centred", {"transposition_invariant": True}
        ),
        "beat_f_measure_aligned": _Measure("rhythm", "beat_f_measure", {"align": "offset"}),
        "information_gain_aligned": _Measure("rhythm", "information_gain", {"align": "offset"}),
        "boundary_f_measure_3s": _Measure("structure", "boundary_f_measure", {"window_sec": 3.0}),
    }
)  # fmt: skip
"""Scores that are another function with options; every other one is the function of its name in its facet's module."""


_ON_SPAN: Final = frozenset(
    {"beat_f_measure", "information_gain", "beat_f_measure_aligned", "information_gain_aligned"}
)
"""Scores whose function must be told where the reference ends; the others read it off their annotations."""


def scale_of(name: str) -> Scale:
    """Return range, direction and facet of a metric or companion."""
    return PRESERVATION_METRICS[name] if name in PRESERVATION_METRICS else COMPANIONS[name]


def measure(name: str, variant: str, end_sec: float) -> tuple[Callable[..., float], dict[str, Any]]:
    """Return the function behind a metric or companion, and the keyword arguments that make it this one.

    Parameters
    ----------
    name, variant
        Of the score.
    end_sec
        End of the reference. What the estimate has after it is not judged, but by the official code.

    """
    found = _NAMED.get(name) or _Measure(scale_of(name).facet, name, {})
    module = importlib.import_module(f"music_evals.metrics.{found.module}")
    span = {"end_sec": end_sec} if name in _ON_SPAN and variant != "official" else {}
    return getattr(module, found.function), {**found.options, **span, "variant": variant}


def select_metrics(names: Iterable[str] | None) -> tuple[str, ...]:
    """Return the metrics that are asked for, in the order of `PRESERVATION_METRICS`; None for all.

    Raises
    ------
    UnknownNameError
        A metric that does not exist; names the nearest.

    """
    return _select(names, PRESERVATION_METRICS, "metric")


def select_companions(names: Iterable[str] | bool, metrics: Iterable[str]) -> tuple[str, ...]:  # noqa: FBT001
    """Return the companions that are asked for, in the order of `COMPANIONS`; True for all of the metrics' facets.

    Raises
    ------
    UnknownNameError
        A companion that does not exist; names the nearest.

    """
    if isinstance(names, bool):
        return facet_companions(metrics) if names else ()
    return _select(names, COMPANIONS, "companion")


def facet_companions(metrics: Iterable[str]) -> tuple[str, ...]:
    """Return all companions of the facets that these metrics belong to."""
    facets = {PRESERVATION_METRICS[name].facet for name in metrics}
    return tuple(name for name, scale in COMPANIONS.items() if scale.facet in facets)


def _select(names: Iterable[str] | None, known: Mapping[str, Scale], kind: str) -> tuple[str, ...]:
    wanted = tuple(known) if names is None else (names,) if isinstance(names, str) else tuple(names)
    for name in wanted:
        if name not in known:
            raise UnknownNameError(kind, name, known)
    return tuple(name for name in known if name in wanted)
