"""Which General MIDI programs train our networks, and which the benchmark `known_edits` is played on.

The two lists share no program, and each holds several of every melodic family, so that a network is judged on
instruments that it never heard. Programs are counted from 0. Left out are those that do not sound at the written pitch
or have none: guitar harmonics, timpani, orchestra hit, the lead in fifths, bagpipe, sound effects and percussion.
"""

from __future__ import annotations

FAMILIES: dict[str, range] = {
    "piano": range(8), "chromatic_percussion": range(8, 16), "organ": range(16, 24), "guitar": range(24, 32),
    "bass": range(32, 40), "strings": range(40, 48), "ensemble": range(48, 56), "brass": range(56, 64),
    "reed": range(64, 72), "pipe": range(72, 80), "synth_lead": range(80, 88), "synth_pad": range(88, 96),
    "ethnic": range(104, 112),
}  # fmt: skip
"""Family -> its programs, as the General MIDI standard groups them."""

_UNPITCHED = {31, 47, 55, 86, 109}

TRAIN_PROGRAMS: tuple[int, ...] = tuple(
    program for family in FAMILIES.values() for program in family if program % 2 == 1 and program not in _UNPITCHED
)
"""The odd programs: bright piano, steel guitar, fingered bass, viola, slow strings, trombone, clarinet, flute, ..."""

BENCHMARK_PROGRAMS: tuple[int, ...] = tuple(
    program for family in FAMILIES.values() for program in family if program % 2 == 0 and program not in _UNPITCHED
)
"""The even programs: grand piano, nylon guitar, acoustic bass, violin, strings, trumpet, oboe, recorder, ..."""


def programs_of(family: str, programs: tuple[int, ...]) -> tuple[int, ...]:
    """Return those of `programs` that belong to a family of `FAMILIES`."""
    return tuple(program for program in programs if program in FAMILIES[family])
