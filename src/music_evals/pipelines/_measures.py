"""Which function computes which metric of music context preservation, and from which features."""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from music_evals.errors import InvalidInputError, UnknownNameError, UnsupportedTypeError
from music_evals.metrics.arrays import OF_AUTHORS
from music_evals.metrics.catalogue import AUXILIARY, CATALOGUE, PRESERVATION_METRICS, RELEASES, select_names
from music_evals.metrics.rhythm import ALIGNMENTS

__all__ = ["FACETS", "check_options", "facet_auxiliary", "measure", "select_auxiliary", "select_metrics"]


class _Measure(NamedTuple):
    """A function of `metrics` with the options that make a metric of it."""

    module: str
    function: str
    options: Mapping[str, Any]


FACETS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        facet: tuple(name for name, metric in PRESERVATION_METRICS.items() if metric.facet == facet)
        for facet in dict.fromkeys(metric.facet for metric in PRESERVATION_METRICS.values())
    }
)
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


def measure(name: str, variant: str, end_sec: float) -> tuple[Callable[..., float], dict[str, Any]]:
    """Return the function behind a main or auxiliary metric, and the keyword arguments that make it this one.

    A function that has `end_sec` is given the end of the reference; the others read it off their annotations.
    """
    entry = _NAMED.get(name) or _Measure(CATALOGUE[name].facet, name, {})
    function = getattr(importlib.import_module(f"music_evals.metrics.{entry.module}"), entry.function)
    span = {"end_sec": end_sec} if "end_sec" in _keywords(function) and variant not in OF_AUTHORS else {}
    return function, {**entry.options, **span, "variant": variant}


@functools.cache
def _keywords(function: Callable[..., float]) -> tuple[str, ...]:
    """Return the names of the options of a metric."""
    parameters = inspect.signature(function).parameters.values()
    return tuple(parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY)


def options_of(name: str, variant: str) -> tuple[str, ...]:
    """Return the options of a score that are free: neither the variant, nor the span, nor what makes it this score."""
    function, fixed = measure(name, variant, 0.0)
    return tuple(keyword for keyword in _keywords(function) if keyword not in {*fixed, "variant", "end_sec"})


def check_options(options: Mapping[str, Any], scores: Iterable[str], variant: str) -> None:
    """Raise unless all options are free ones of scores that are computed, with values that their functions can take."""
    computed = tuple(scores)
    for name, chosen in options.items():
        if name not in computed:
            raise UnknownNameError("computed metric", name, computed)
        if not isinstance(chosen, Mapping):
            raise UnsupportedTypeError(
                f"options of {name} must be a mapping of option to value, got {type(chosen).__name__}"
            )
        free, kind = options_of(name, variant), f"option of {name}"
        for option, value in chosen.items():
            if option not in free:
                raise UnknownNameError(kind, str(option), free)
            _check_option(name, option, value)


def _check_option(name: str, option: str, value: Any) -> None:
    if option == "align":
        if value not in ALIGNMENTS:
            raise UnknownNameError("alignment", str(value), ALIGNMENTS)
        return
    accepts, expected = _ACCEPTED.get(option, (None, ""))
    if accepts is not None and not accepts(value):
        raise InvalidInputError(f"option {option} of {name} must be {expected}, got {value!r}")


def _is_number(value: Any, kind: type = numbers.Real) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool) and math.isfinite(value)  # type: ignore[arg-type]


def _is_seconds(value: Any) -> bool:
    return _is_number(value) and value >= 0


_SECONDS = (_is_seconds, "a finite number of seconds, at least 0")
_ACCEPTED: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = MappingProxyType(
    {
        "tolerance_sec": _SECONDS,
        "min_beat_time_sec": (lambda value: value is None or _is_seconds(value), f"{_SECONDS[1]}, or None"),
        "window_sec": _SECONDS,
        "smooth_sec": _SECONDS,
        "min_lag_sec": _SECONDS,
        "tempo_ratio": (lambda value: _is_number(value) and value > 0, "a finite number above 0"),
        "transposition_invariant": (lambda value: isinstance(value, bool), "True or False"),
        "n": (lambda value: _is_number(value, numbers.Integral) and value >= 1, "a whole number, at least 1"),
    }
)
"""Option -> whether a value will do, and which do, in words; `align` is a name, and others are up to their function."""


def select_metrics(names: Iterable[str] | None, variant: str) -> tuple[str, ...]:
    """Return the metrics that are asked for, by name or facet, in the order of the variant's; None for all of these.

    Auxiliary metrics are metrics where they are named, but of a release.
    """
    own = RELEASES.get(variant, tuple(PRESERVATION_METRICS))
    if names is None:
        return own
    wanted: list[str] = []
    for given in [names] if isinstance(names, str) else names:
        wanted += [name for name in own if CATALOGUE[name].facet == given] or [given]
    known, kind = (own, f"metric of {variant}") if variant in RELEASES else ((*own, *AUXILIARY), "metric")
    return select_names(wanted, known, kind)


def select_auxiliary(names: Iterable[str] | bool, metrics: Iterable[str], variant: str) -> tuple[str, ...]:  # noqa: FBT001
    """Return the auxiliary metrics that are asked for, in the order of `AUXILIARY`; True for all of the facets.

    One that is among the metrics is no auxiliary metric of theirs; a release has none.
    """
    if variant in RELEASES:
        return select_names(() if isinstance(names, bool) else names, (), f"auxiliary metric of {variant}")
    if isinstance(names, bool):
        return facet_auxiliary(metrics) if names else ()
    known = frozenset(metrics)
    return tuple(name for name in select_names(names, AUXILIARY, "auxiliary metric") if name not in known)


def facet_auxiliary(metrics: Iterable[str]) -> tuple[str, ...]:
    """Return all auxiliary metrics of the facets that these metrics belong to, but for those among them."""
    own = frozenset(metrics)
    facets = {CATALOGUE[name].facet for name in own}
    return tuple(name for name, scale in AUXILIARY.items() if scale.facet in facets and name not in own)
