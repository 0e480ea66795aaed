"""Types and bounds of settings: what is taken, and what is refused before anything is built."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pytest

from music_evals.errors import InvalidInputError
from music_evals.protocols.settings import check_parameters, check_type, check_types

if TYPE_CHECKING:
    from somewhere import Unknown


@dataclasses.dataclass
class Settings:
    steps: int = 3
    rate: float = 1.0
    name: str | None = None
    mode: Literal["a", "b"] = "a"
    many: Sequence[int] = ()

    BOUNDS: ClassVar = {"steps": (1, 10), "rate": (0.5, 2)}

    def __post_init__(self) -> None:
        check_types(self)


class System:
    BOUNDS: ClassVar = {"steps": (1, 10), "untyped": (0, 1)}

    def __init__(self, model: Unknown, *, steps: int = 3, untyped=0) -> None:
        raise AssertionError("built", model, steps, untyped)

    @classmethod
    def from_pretrained(cls, source: str, *, precision: str = "fp32") -> System:
        raise AssertionError("loaded", source, precision)


TAKEN = (
    (1, float), (Fraction(1, 2), float), (np.float32(0.5), float), (np.int64(2), int), (None, int | None), (True, bool),
    ([1], tuple), ("x", str), (math.nan, Any), ("x", Sequence[int]), ({}, dict),
)  # fmt: skip
REFUSED = (
    ("abc", float), (math.nan, float), (math.inf, float), (-math.inf, float | None), (True, float), (True, int),
    (2.0, int), (1, bool), (1, str), (None, float), ("x", tuple), ([], dict),
)  # fmt: skip


@pytest.mark.parametrize(("value", "hint"), TAKEN)
def test_what_is_of_the_type_is_taken(value: Any, hint: Any) -> None:
    check_type("it", value, hint)


@pytest.mark.parametrize(("value", "hint"), REFUSED)
def test_what_is_not_of_the_type_is_refused_by_its_name(value: Any, hint: Any) -> None:
    with pytest.raises(InvalidInputError, match="it must be"):
        check_type("it", value, hint)


@pytest.mark.parametrize(
    ("name", "value"), [("steps", 0), ("steps", 11), ("steps", "3"), ("rate", 2.1), ("rate", math.nan), ("name", 3)]
)
def test_a_field_of_a_dataclass_is_named(name: str, value: Any) -> None:
    Settings(rate=2, name="x")
    with pytest.raises(InvalidInputError, match=name):
        Settings(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"), [("steps", "many"), ("steps", 99), ("precision", 16), ("untyped", 2), ("untyped", "x")]
)
def test_parameters_are_checked_and_nothing_is_built(name: str, value: Any) -> None:
    check_parameters(System, {"steps": 10, "precision": "bf16", "untyped": 1, "model": "left to the class"})
    with pytest.raises(InvalidInputError, match=name):
        check_parameters(System, {name: value})
