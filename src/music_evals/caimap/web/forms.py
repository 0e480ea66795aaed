"""Forms of the pages as values, and values as what the pages show; two drafts of one form, and one made of both."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from typing import Any, Final, NamedTuple

from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS
from music_evals.caimap.domain.structure import MAX_LINES, line_pattern, line_times, usual_readings
from music_evals.caimap.domain.values import SECTION_KINDS, Description, Effects, Section, Song, Structure, Tagged
from music_evals.caimap.web.words import catalogue, dimension_names, translator
from music_evals.errors import InvalidAnnotationError, InvalidInputError

Form = Mapping[str, str]

_LABELS: Final = 6
"""Numbers of each kind of section that are offered at first."""


class Row(NamedTuple):
    """A row of the structure editor: label of the section that it begins, line, reading; each may be empty."""

    label: str
    line: str
    rhymes: bool
    reading: str = ""


def rows_of(form: Form) -> list[Row]:
    """Return the rows of a structure editor as they were written."""
    return [
        Row(label.strip(), form[f"line_{number}"].strip(), f"rhyme_{number}" in form, reading.strip().replace("v", "ü"))
        for number in _rows(form)
        for label, reading in [(form.get(f"label_{number}", ""), form.get(f"reading_{number}", "").lower())]
    ]


def split_rows(rows: Iterable[Row]) -> list[Row]:
    """Make two rows of a line with a stroke: the first keeps the label, the last the mark of its end."""
    split = []
    for row in rows:
        parts = [part.strip() for part in row.line.split("/") if part.strip()] or [""]
        last = len(parts) - 1
        split += [
            Row("" if at else row.label, part, *(row[2:] if at == last else (False,))) for at, part in enumerate(parts)
        ]
    return split


def row_fields(rows: Iterable[Row], theme: str) -> dict[str, str]:
    """Return the fields of the structure editor that hold these rows."""
    fields = {"theme": theme}
    for number, row in enumerate(rows):
        fields |= {f"label_{number}": row.label, f"line_{number}": row.line, f"reading_{number}": row.reading}
        if row.rhymes:
            fields[f"rhyme_{number}"] = "on"
    return fields


def tidied(form: Form) -> dict[str, str]:
    """Return the fields of a structure editor as it is shown next: split lines in two rows, emptied ones left out."""
    rows: list[Row] = []
    for number, row in enumerate(rows_of(form)):
        if f"insert_{number}" in form:
            rows.append(Row("", "", rhymes=False))
        rows += [part for part in split_rows([row]) if part.line or part.label]
    return row_fields(rows, form.get("theme", ""))


def labels_for(fields: Form) -> tuple[str, ...]:
    """Return the labels that an editor offers: of each kind six, and always one more than there are."""
    highest = dict.fromkeys(SECTION_KINDS, _LABELS - 1)
    for row in rows_of(fields):
        numbered = re.fullmatch(r"(.+?)([1-9]\d?)", row.label)
        if numbered and numbered[1] in highest:
            highest[numbered[1]] = max(highest[numbered[1]], int(numbered[2]))
    return tuple(f"{kind}{number}" for kind, most in highest.items() for number in range(1, min(most + 1, 99) + 1))


def editor_values(fields: Form) -> dict[str, Any]:
    """Return what the template of the editor of structures takes."""
    return {"fields": fields, "labels_for": labels_for, "row_aids": _row_aids, "kinds": SECTION_KINDS}


def _row_aids(fields: Form, song: Song) -> list[tuple[float | None, str]]:
    """Return of each row when its line begins in the recording, where that is known, and its usual reading."""
    lines = [row.line for row in rows_of(fields)]
    return list(zip(line_times(lines, song), usual_readings(lines), strict=True))


def structure_of(form: Form) -> Structure:
    """Read the structure editor: a line begins a section where a label is chosen."""
    sections: list[tuple[str, list[Row]]] = []
    for row in split_rows(rows_of(form)):
        if row.label:
            sections.append((row.label, []))
        if row.line and not sections:
            raise InvalidAnnotationError("the first line must begin a section; choose its label", kind="first_label")
        if row.line:
            sections[-1][1].append(row)
    structure_sections = []
    for label, rows in sections:
        lines = [row.line for row in rows]
        patterns = [line_pattern(row.line, row.rhymes) for row in rows]
        usual = usual_readings(lines)
        corrected = [row.reading * (row.reading != read) for row, read in zip(rows, usual, strict=True)]
        structure_sections.append(Section(label, tuple(lines), tuple(patterns), tuple(corrected)))
    return Structure(tuple(structure_sections), form.get("theme", "").strip())


def structure_fields(structure: Structure) -> dict[str, str]:
    """Return the fields of the structure editor that `structure_of` reads as this structure."""
    rows = []
    for section in structure.sections:
        lines = list(zip(section.lines, section.rhyme, section.readings, strict=True)) or [("", "", "")]
        rows += [
            Row("" if place else section.label, line, pattern.endswith("R"), reading)
            for place, (line, pattern, reading) in enumerate(lines)
        ]
    return row_fields(rows, structure.theme)


def description_of(form: Form, group: str) -> Description:
    """Read the description editor."""
    if form.get("clear") not in {"yes", "no"}:
        raise InvalidAnnotationError("say whether the sound is clear", kind="no_clear")
    dimensions = {
        name: Tagged(
            tuple(
                dict.fromkeys(
                    filter(None, (tag.strip() for tag in re.split(r"[、,，;；\n]", form.get(f"tags_{name}", ""))))
                )
            ),
            form.get(f"text_{name}", "").strip(),
        )
        for name in DIMENSIONS[group]
        if name != AUDIO_EFFECTS
    }
    effects = Effects(form["clear"] == "yes", "live" in form, "lo_fi" in form)
    return Description(group, form.get("overall_text", "").strip(), dimensions, effects)


_OF_THE_FORM: Final = ("csrf", "version", "password", "thread", "place", "to", "here", "insert", "language", "decision")


def sent_texts(form: Form, language: str) -> list[tuple[str, str]]:
    """Return the texts of a form that was refused, each with the name of its field, to be copied."""
    text, dimensions = translator(language), dimension_names(language)
    lines = [f"{form.get(f'label_{number}', '')}\t{form[f'line_{number}']}".strip() for number in _rows(form)]
    texts = [(text("line"), "\n".join(lines))] if any(lines) else []
    for name, value in form.items():
        if not value.strip() or name.startswith(_OF_THE_FORM) or re.fullmatch(r"(label|line|rhyme|reading)_\d+", name):
            continue
        kind, _, dimension = name.partition("_")
        if kind in {"tags", "text"} and dimension in dimensions:
            label = f"{dimensions[dimension]} ({text('tags' if kind == 'tags' else 'text')})"
        else:
            label = text(name) if name in catalogue() else name
        texts.append((label, value))
    return texts


def _rows(form: Form) -> list[int]:
    """Return the numbers of the rows of a structure editor."""
    return list(itertools.takewhile(lambda number: f"line_{number}" in form, range(MAX_LINES + 1)))


# two drafts of one form

Part = list[Row] | str
"""Rows of a structure that stand together, or the text of a field."""


def written(form: Mapping[str, str]) -> dict[str, str]:
    """Return the fields that somebody filled in, as they are saved: split lines have rows of their own."""
    of_the_form = re.compile("csrf|version|sure|merges|take(_.*)?")
    fields = {name: value for name, value in form.items() if not of_the_form.fullmatch(name)}
    return tidied(fields) if "line_0" in fields else fields


def parts(saved: Mapping[str, str], page: Mapping[str, str]) -> list[tuple[str, Part, Part]]:
    """Return the parts of two drafts: a key, and what each has; rows lie beside each other, however many there are."""
    ours, theirs = rows_of(saved), rows_of(page)
    steps = SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
    rows = [(f"rows_{number}", ours[a:b], theirs[c:d]) for number, (_, a, b, c, d) in enumerate(steps)]
    names = dict.fromkeys(name for name in (*saved, *page) if not re.search(r"_\d+$", name))
    return [*rows, *((name, saved.get(name, ""), page.get(name, "")) for name in names)]


def merged(saved: Mapping[str, str], page: Mapping[str, str], choice: Mapping[str, str]) -> dict[str, str]:
    """Return one draft of two, of each part the one that ``take_`` and its key, or ``take``, names: kept or page."""
    rows: list[Row] = []
    fields: dict[str, str] = {}
    for key, ours, theirs in parts(saved, page):
        taken = choice.get(f"take_{key}", choice.get("take")) if ours != theirs else "page"
        if taken not in {"kept", "page"}:
            raise InvalidInputError(f"choose one of both drafts for each part; {key} is open", kind="no_choice")
        part = ours if taken == "kept" else theirs
        if isinstance(part, list):
            rows += part
        elif part:
            fields[key] = part
    return row_fields(rows, fields.pop("theme", "")) | fields if rows else fields


def texts_of_part(part: Part) -> list[str]:
    """Return a part of a draft as lines to be read."""
    if isinstance(part, str):
        return part.splitlines()
    return [" ".join(filter(None, (row.label, row.line, "✓" * row.rhymes, *row[3:]))) for row in part]
