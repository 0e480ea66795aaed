"""What an edit is asked to change, as a quantity that can be measured afterwards.

A target is a kind and an amount, written as a musician says it: ``tempo`` by ``"1.2x"``, ``key`` to ``"A minor"``,
``loudness`` by ``"+6 dB"``. `FORMS` shows how each kind is written.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Self

from music_evals.annotations.recordings import Key
from music_evals.annotations.scores import DRUMS
from music_evals.errors import InvalidInputError, UnknownNameError, UnsupportedTypeError

__all__ = ["FORMS", "INSTRUMENTS", "EditTarget", "targets_of", "targets_text", "targets_to_dict"]

FORMS: Final[Mapping[str, str]] = {
    "tempo": "1.2x, or 120 bpm",
    "transpose": "+2 or -3, in semitones",
    "key": "A minor",
    "metre": "3/4",
    "chords": "C:maj A:min F:maj G:maj, a progression that repeats",
    "instrument_added": "flute",
    "instrument_removed": "drums",
    "length": "0.5x, or 20 s",
    "loudness": "+6 dB, or -14 LUFS",
}
"""Kind of target -> how it is written."""

INSTRUMENTS: Final[Mapping[str, range]] = {
    "piano": range(8),
    "organ": range(16, 24),
    "accordion": range(21, 22),
    "harmonica": range(22, 23),
    "guitar": range(24, 32),
    "bass": range(32, 40),
    "violin": range(40, 41),
    "viola": range(41, 42),
    "cello": range(42, 43),
    "harp": range(46, 47),
    "strings": range(40, 52),
    "choir": range(52, 55),
    "trumpet": range(56, 57),
    "trombone": range(57, 58),
    "brass": range(56, 64),
    "saxophone": range(64, 68),
    "oboe": range(68, 69),
    "clarinet": range(71, 72),
    "flute": range(73, 74),
    "synthesizer": range(80, 104),
    "drums": range(DRUMS, DRUMS + 1),
}
"""Name of an instrument or of a family -> its programs of General MIDI, counted from 0; `DRUMS` is the last."""

_NUMBER = r"([+-]?\d+(?:\.\d+)?)"
_PITCHES: Final = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
_UNITS: Final = {"tempo": ("x", "bpm"), "length": ("x", "s"), "loudness": ("dB", "LUFS"), "transpose": ("",)}
_METRE = re.compile(r"(\d{1,2})/(1|2|4|8|16)")
_KEY = re.compile(r"([A-G])([#b]?) (major|minor)", re.IGNORECASE)
_SHARPS: Final = {
    "Cb": "B", "Db": "C#", "Eb": "D#", "E#": "F", "Fb": "E", "Gb": "F#", "Ab": "G#", "Bb": "A#", "B#": "C",
}  # fmt: skip
_CHORD = re.compile(r"[A-G][#b]?:(?:maj|min)")


@dataclasses.dataclass(frozen=True)
class EditTarget:
    """One thing that an edit is asked to change.

    Parameters
    ----------
    kind
        One of `FORMS`.
    text
        How much, or what to, in the form of its kind.

    Attributes
    ----------
    amount
        The number of ``tempo``, ``transpose``, ``length`` and ``loudness``; of ``metre`` the beats of a bar; else 0.
    unit
        ``"x"`` (a factor on the original), ``"bpm"``, ``"s"``, ``"dB"`` (a change) or ``"LUFS"``; empty of the others.

    Raises
    ------
    UnknownNameError
        A kind or an instrument that does not exist.
    InvalidInputError
        A text of another form, or a change that changes nothing.
    """

    kind: str
    text: str
    amount: float = dataclasses.field(default=0.0, init=False, repr=False)
    unit: str = dataclasses.field(default="", init=False, repr=False)

    def __post_init__(self) -> None:
        if self.kind not in FORMS:
            raise UnknownNameError("kind of target", self.kind, FORMS)
        text = " ".join(self.text.split())
        object.__setattr__(self, "text", text)
        if self.kind in _UNITS:
            self._read_amount(text)
        elif self.kind == "metre":
            self._set(float((_METRE.fullmatch(text) or self._refuse())[1]))
        elif self.kind == "chords":
            if not text or not all(map(_CHORD.fullmatch, text.split())):
                self._refuse()
        elif self.kind == "key":
            _KEY.fullmatch(text) or self._refuse()
        elif text not in INSTRUMENTS:
            raise UnknownNameError("instrument", text, INSTRUMENTS)

    def _read_amount(self, text: str) -> None:
        units = {unit.casefold(): unit for unit in _UNITS[self.kind]}
        match = re.fullmatch(rf"{_NUMBER} ?({'|'.join(units)})", text, re.IGNORECASE) or self._refuse()
        amount, unit = float(match[1]), units[match[2].casefold()]
        is_change = unit in {"x", "dB", ""}
        if unit in {"x", "bpm", "s"} and amount <= 0:
            self._refuse("above 0")
        if is_change and amount == (1.0 if unit == "x" else 0.0):
            self._refuse("a change")
        if self.kind == "transpose" and (amount != int(amount) or abs(amount) > 24):
            self._refuse("a whole number of semitones up to two octaves")
        self._set(amount, unit)

    def _set(self, amount: float, unit: str = "") -> None:
        object.__setattr__(self, "amount", amount)
        object.__setattr__(self, "unit", unit)

    def _refuse(self, rule: str = "") -> Any:
        form = f"{FORMS[self.kind]}{f'; {rule}' if rule else ''}"
        raise InvalidInputError(f"a target of {self.kind} is written like {form}; got {self.text!r}")

    @property
    def key(self) -> Key:
        """The key of a target of this kind."""
        match = _KEY.fullmatch(self.text)
        assert match is not None
        accidental = {"": 0, "#": 1, "b": -1}[match[2].lower()]
        return Key((_PITCHES[match[1].upper()] + accidental) % 12, match[3].lower())

    @property
    def programs(self) -> range:
        """The programs of General MIDI of an instrument."""
        return INSTRUMENTS[self.text]

    @property
    def chords(self) -> tuple[str, ...]:
        """The labels of a progression, flats as sharps, as the extractors write them."""
        return tuple(_SHARPS.get(label[:2], label[:2]) + label[2:] for label in self.text.split())

    @classmethod
    def of(cls, kind: str, value: object) -> Self:
        """Return the target of a field of a manifest, whose value may be a number: the factor or the semitones."""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise UnsupportedTypeError(f"a target of {kind} is a text or a number, got {type(value).__name__}")
        unit = _UNITS.get(kind, ("",))[0]
        return cls(kind, value if isinstance(value, str) else f"{value:g}{unit}")


def targets_of(values: Mapping[str, Any] | str | None) -> tuple[EditTarget, ...]:
    """Return targets from a mapping of kind to amount, or from text such as ``"tempo=1.2x; key=A minor"``.

    Raises what `EditTarget` raises, `InvalidInputError` for text without ``=``, and `UnsupportedTypeError` for anything
    else.

    Examples
    --------
    >>> [target.text for target in targets_of("tempo=1.2x; key=A minor")]
    ['1.2x', 'A minor']
    """
    if values is None or values == "":
        return ()
    if isinstance(values, str):
        parts = [part.partition("=") for part in values.split(";") if part.strip()]
        if not all(equals for _, equals, _ in parts):
            raise InvalidInputError(f"targets are written like tempo=1.2x; key=A minor, got {values!r}")
        values = {kind.strip(): text for kind, _, text in parts}
    if not isinstance(values, Mapping):
        raise UnsupportedTypeError(f"targets are a mapping of kind to amount, or text, got {type(values).__name__}")
    return tuple(EditTarget.of(str(kind), value) for kind, value in values.items())


def targets_text(targets: Iterable[EditTarget]) -> str:
    """Return targets as one text, such as ``"tempo=1.2x; key=A minor"``; `targets_of` is the inverse."""
    return "; ".join(f"{target.kind}={target.text}" for target in targets)


def targets_to_dict(targets: tuple[EditTarget, ...]) -> dict[str, str]:
    """Return kind -> text; `targets_of` is the inverse."""
    return {target.kind: target.text for target in targets}
