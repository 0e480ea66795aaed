"""Known damage to lyrics, step by step, and what language models do to them; no step gives back what was asked for."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from music_evals.lyrics.rhyme import last_character, rhyme_class, rhyme_marks

Text = list[tuple[str, list[str]]]
"""Label and lines of each section."""

# Characters of each rhyme class, to break a rhyme with; the class of each is looked up, not asserted.
POOL = "花我歌月诗儿西谁来雨鱼舟桥山门霜风红"
FILLER = "天地人心云水石木火土"


def read(text: str) -> Text:
    """Cut lyrics at their headers, which stand on lines of their own."""
    found: Text = []
    for line in text.split("\n"):
        if line.startswith("("):
            found.append((line[1:-1], []))
        else:
            found[-1][1].append(line)
    return found


def written(text: Text) -> str:
    """Return the opposite of `read`."""
    return "\n".join(line for label, lines in text for line in (f"({label})", *lines))


def copy(text: Text) -> Text:
    """Return sections and lines that may be changed."""
    return [(label, list(lines)) for label, lines in text]


def places(text: Text, fewest: int = 1) -> list[tuple[int, int]]:
    """Return section and line of all lines with so many Chinese characters."""
    return [
        (i, j)
        for i, (_, lines) in enumerate(text)
        for j, line in enumerate(lines)
        if sum("\u4e00" <= char <= "\u9fff" for char in line) >= fewest
    ]


def replace_last(text: Text, rng: random.Random) -> Text:
    """Replace the last character of a line by one of a class that no line of its section has."""
    return _replaced(text, *rng.choice(places(text)), rng)


def break_rhyme(text: Text, rng: random.Random) -> Text:
    """Do so in a line that rhymes, where there is one."""
    marks = [rhyme_marks(lines, "char") for _, lines in text]
    found = [(i, j) for i, j in places(text) if marks[i][j]]
    return _replaced(text, *rng.choice(found), rng) if found else text


def _replaced(text: Text, i: int, j: int, rng: random.Random) -> Text:
    lines = text[i][1]
    known = {rhyme_class(line, "char") for line in lines}
    free = [char for char in POOL if rhyme_class(char, "char") not in known]
    if free:
        at = last_character(lines[j])
        lines[j] = lines[j][:at] + rng.choice(free) + lines[j][at + 1 :]
    return text


def drop_character(text: Text, rng: random.Random) -> Text:
    """Drop the first character of a line that begins with a Chinese one and has more of them."""
    if found := _begun(text):
        i, j = rng.choice(found)
        text[i][1][j] = text[i][1][j][1:].strip()
    return text


def spoil_character(text: Text, rng: random.Random) -> Text:
    """Put a Latin letter in the place of the first character of a line that begins with a Chinese one."""
    if found := _begun(text):
        i, j = rng.choice(found)
        text[i][1][j] = "c" + text[i][1][j][1:]
    return text


def _begun(text: Text) -> list[tuple[int, int]]:
    return [(i, j) for i, j in places(text, 3) if "\u4e00" <= text[i][1][j][0] <= "\u9fff"]


def drop_line(text: Text, rng: random.Random) -> Text:
    """Drop a line that is sung."""
    i, j = rng.choice(places(text))
    del text[i][1][j]
    return text


def drop_section(text: Text, rng: random.Random) -> Text:
    """Drop a section that has lines, unless it is the last one."""
    found = sorted({i for i, _ in places(text)})
    if len(found) > 1:
        del text[rng.choice(found)]
    return text


def misname(text: Text, rng: random.Random) -> Text:
    """Call a section that has lines by a name that no song asks for."""
    i = rng.choice(sorted({i for i, _ in places(text)}))
    text[i] = ("xyz", text[i][1])
    return text


LOSSES: Mapping[str, Callable[[Text, random.Random], Text]] = {
    "a rhyme broken": break_rhyme,
    "a character dropped": drop_character,
    "a character in Latin": spoil_character,
    "a line dropped": drop_line,
    "a section dropped": drop_section,
    "a section misnamed": misname,
}
"""One step each; any number of them in any order asks for nothing back."""


def chain(text: Text, steps: int, rng: random.Random) -> list[tuple[str, Text]]:
    """Return a chain of losses, each with its name, while there is a line to damage."""
    found = []
    for _ in range(steps):
        if not places(text):
            break
        name = rng.choice(list(LOSSES))
        text = LOSSES[name](copy(text), rng)
        found.append((name, text))
    return found


def many(step: Callable[[Text, random.Random], Text], n: int) -> Callable[[Text, random.Random], Text]:
    """Repeat a step."""

    def repeated(text: Text, rng: random.Random) -> Text:
        for _ in range(n):
            if places(text):
                text = step(text, rng)
        return text

    return repeated


def uneven(text: Text, rng: random.Random) -> Text:
    """Make every line one character longer or shorter, as language models count."""
    return [
        (label, [line[1:] if len(line) > 2 and rng.random() < 0.5 else rng.choice(FILLER) + line for line in lines])
        for label, lines in text
    ]


def chattier(text: Text, rng: random.Random) -> Text:
    """Add a line to every section."""
    return [(label, [*lines, "".join(rng.choice(FILLER) for _ in range(8))]) for label, lines in text]


def cut_short(text: Text, _: random.Random) -> Text:
    """Stop in the middle of the song."""
    return text[: max(1, len(text) // 2)]


def english(text: Text, _: random.Random) -> Text:
    """Sing the last section in English."""
    return [*text[:-1], (text[-1][0], ["baby come back to me" for _ in text[-1][1]])]


def shuffled(text: Text, rng: random.Random) -> Text:
    """Put the sections in another order."""
    return rng.sample(text, len(text))


def loosely_rhymed(text: Text, rng: random.Random) -> Text:
    """Break half of the rhymes."""
    return many(break_rhyme, max(1, sum(len(lines) for _, lines in text) // 2))(text, rng)


LIKE_MODELS: Mapping[str, Callable[[Text, random.Random], Text]] = {
    "eight last characters replaced": many(replace_last, 8),
    "three last characters replaced": many(replace_last, 3),
    "one character dropped": drop_character,
    "every line one character off": uneven,
    "half of the rhymes broken": loosely_rhymed,
    "a line too many in every section": chattier,
    "sections in another order": shuffled,
    "the second half missing": cut_short,
    "the last section in English": english,
    "every section misnamed": many(misname, 60),
}
"""What goes wrong in generated lyrics, one kind at a time."""
