"""How often each strain of Aird's airs is played, beside what their transcriber says of it.

::

    python -m benchmarks.notation.strains --files FOLDER

1,117 of the 1,180 tunes have a field such as ``I: || ::``, which states the bar line that ends each strain: here the
first is played once and the second twice. Our order of playing is counted twice, by section 4.8 of ABC 2.1, and as if
a double bar were no place to restart from, which is what abcjs and abc2midi do before the first repeat sign.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path

from benchmarks.notation.corpora import CORPORA, items_of

from music_evals.symbolic.limits import DEFAULT_LIMITS
from music_evals.symbolic.reading.abc import parse_abc
from music_evals.symbolic.reading.written import WrittenScore, play_order

TIMES = {"||": 1, "|]": 1, "::": 2, ":|": 2}
ENDINGS = re.compile(r"\(1\)\s*\S+\s*\(2\)\s*\S+")  # one strain with two endings


def stated_times(tune: str) -> list[int] | None:
    """Return how often the field ``I:`` says that each strain is played; None where it says anything else."""
    field = re.search(r"^I:([^%\n]*)", tune, re.MULTILINE)
    words = ENDINGS.sub(" :: ", field.group(1)).split() if field is not None else []
    return [TIMES[word] for word in words] if words and TIMES.keys() >= set(words) else None


def strains(written: WrittenScore) -> list[list[int]]:
    """Return the measures of each strain: strains end at double bars and repeat ends, and not between endings."""
    found: list[list[int]] = []
    ends = True
    for index, measure in enumerate(written.measures):
        if ends or measure.starts_section or measure.starts_repeat:
            found.append([])
        found[-1].append(index)
        following = written.measures[index + 1 : index + 2]
        ends = measure.ends_repeat > 0 and not (following and following[0].ending)
    return found


def times(written: WrittenScore, groups: list[list[int]]) -> list[int]:
    """Return how often each group of measures is played."""
    played = Counter(play_order(written, "tune", DEFAULT_LIMITS))
    return [max(played[index] for index in group) for group in groups]


def verdict(tune: str) -> str:
    """Return which reading the field of a tune agrees with."""
    stated = stated_times(tune)
    written = parse_abc(tune, "tune", DEFAULT_LIMITS)
    if stated is None or written.parts:
        return "no such field"
    groups = strains(written)
    ours = times(written, groups)
    for measure in written.measures:
        measure.starts_section = False
    other = times(written, groups)
    if len(stated) != len(ours):
        return "another number of strains"
    if ours == other:
        return "both, and the field" if ours == stated else "both, against the field"
    if stated in (ours, other):
        return "section 4.8 alone" if ours == stated else "the beginning alone"
    return "neither"


def main() -> None:
    """Print how many tunes agree with what."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=Path, required=True, help="folder that corpora.py filled")
    (aird,) = (corpus for corpus in CORPORA if corpus.name == "aird")
    counts = Counter(verdict(item.content) for item in items_of(aird, parser.parse_args().files))
    for name, count in counts.most_common():
        print(f"{count:5} {name}")


if __name__ == "__main__":
    main()
