"""How well each rhyme method reads characters of several readings at the end of a line.

    python -m benchmarks.lyric_structure.readings            # a few seconds

Sentences of our own with readings out of CC-CEDICT, ``polyphones.txt``: right is a method that finds the
rhyme class of that reading. The marks of MuChin's data play no part. Writes the table of README.md.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
LIST = HERE / "polyphones.txt"


class Sentence(NamedTuple):
    """A sentence, the word that it ends in, and the reading of its last syllable, as ``hang2``."""

    text: str
    word: str
    reading: str


def read_list(path: Path = LIST) -> list[Sentence]:
    """Return the sentences."""
    rows = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return [Sentence(*row.split("|")) for row in rows]


def class_of(reading: str) -> int | str | None:
    """Return the rhyme class of a reading with the number of its tone."""
    from pypinyin.contrib.tone_convert import to_tone
    from pypinyin.style.bopomofo import converter

    from music_evals.lyrics.readings import rhyme_of_bopomofo

    return rhyme_of_bopomofo(converter.to_bopomofo(to_tone(reading)))


def misread(method: str, sentences: list[Sentence]) -> list[Sentence]:
    """Return the sentences whose class a method does not find."""
    from music_evals.lyrics.rhyme import rhyme_class

    return [each for each in sentences if rhyme_class(each.text, method) != class_of(each.reading)]


def main() -> None:
    """Count, print and write."""
    from music_evals.lyrics.rhyme import METHODS

    sentences = read_list()
    rows = []
    for method in METHODS:
        wrong = misread(method, sentences)
        shown = "、".join(dict.fromkeys(each.word for each in wrong[:6])) + ("…" if len(wrong) > 6 else "")
        rows.append(f"| `{method}` | {len(sentences) - len(wrong)} of {len(sentences)} | {shown} |\n")
    table = "| method | right | misread |\n| --- | --- | --- |\n" + "".join(rows)
    page = HERE / "README.md"
    text = page.read_text(encoding="utf-8")
    marked = r"(?<=<!-- readings -->\n).*?(?=<!-- /readings -->)"
    page.write_text(re.sub(marked, lambda _: table, text, flags=re.DOTALL), encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
