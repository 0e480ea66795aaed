"""Forms of the pages as values, and values as what the pages show."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import Any

from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS
from music_evals.caimap import assurance
from music_evals.caimap.structure import MAX_LINES, line_pattern
from music_evals.caimap.values import Description, Effects, ScoreSheet, Section, Structure, Tagged
from music_evals.caimap.web.wording import dimension_names
from music_evals.caimap.web.words import catalogue, translator
from music_evals.errors import InvalidAnnotationError

__all__ = ["description_of", "sent_texts", "sheet_of", "structure_fields", "structure_of", "tags_of"]

Form = Mapping[str, str]


def tags_of(text: str) -> tuple[str, ...]:
    """Split a field of tags at commas of both scripts; each counts once.

    Examples
    --------
    >>> tags_of("温暖、 钢琴,温暖，")
    ('温暖', '钢琴')

    """
    return tuple(dict.fromkeys(filter(None, (tag.strip() for tag in re.split(r"[、,，;；\n]", text)))))


def structure_of(form: Form) -> Structure:
    """Read the structure editor: a line begins a section where a label is chosen.

    Raises
    ------
    InvalidAnnotationError
        The first line begins no section, or a section or line is none.

    """
    sections: list[tuple[str, list[tuple[str, bool]]]] = []
    for number in range(MAX_LINES + 1):
        if f"line_{number}" not in form:
            break
        label = form.get(f"label_{number}", "").strip()
        parts = [part.strip() for part in form[f"line_{number}"].split("/") if part.strip()]
        if label:
            sections.append((label, []))
        if parts and not sections:
            raise InvalidAnnotationError("the first line must begin a section; choose its label", kind="first_label")
        for part in parts:
            sections[-1][1].append((part, f"rhyme_{number}" in form))
    made = [
        Section(label, tuple(line for line, _ in lines), tuple(line_pattern(*given) for given in lines))
        for label, lines in sections
    ]
    return Structure(tuple(made), form.get("theme", "").strip())


def structure_fields(structure: Structure) -> dict[str, str]:
    """Return the fields of the structure editor that `structure_of` reads as this structure."""
    fields = {"theme": structure.theme}
    number = 0
    for section in structure.sections:
        rows = list(zip(section.lines, section.rhyme, strict=True)) or [("", "")]
        for place, (line, pattern) in enumerate(rows):
            fields |= {f"label_{number}": "" if place else section.label, f"line_{number}": line}
            if pattern.endswith("R"):
                fields[f"rhyme_{number}"] = "on"
            number += 1
    return fields


def description_of(form: Form, group: str) -> Description:
    """Read the description editor.

    Raises
    ------
    InvalidAnnotationError
        It is not asked whether the sound is clear, or a tag is none.

    """
    if form.get("clear") not in {"yes", "no"}:
        raise InvalidAnnotationError("say whether the sound is clear", kind="no_clear")
    dimensions = {
        name: Tagged(tags_of(form.get(f"tags_{name}", "")), form.get(f"text_{name}", "").strip())
        for name in DIMENSIONS[group]
        if name != AUDIO_EFFECTS
    }
    effects = Effects(form["clear"] == "yes", "live" in form, "lo_fi" in form)
    return Description(group, form.get("overall_text", "").strip(), dimensions, effects)


def sheet_of(form: Form, group: str, task: int, inspector: int) -> ScoreSheet:
    """Read a scoring form.

    Raises
    ------
    InvalidAnnotationError
        A field is empty or no number.

    """
    points: dict[tuple[str, str], float] = {}
    for row, part in assurance.FORMS[group]:
        try:
            points[row, part] = float(form.get(f"{row}.{part}", ""))
        except ValueError as error:
            raise InvalidAnnotationError(
                f"{row}, {part}: points are a number", kind="points_number", row=row, part=part
            ) from error
    return ScoreSheet(task, inspector, points, form.get("remark", ""))


def plain_form(given: Any) -> dict[str, str]:
    """Return the fields of a submitted form that are texts; files are not taken."""
    return {name: value for name, value in given.items() if isinstance(value, str)}


_OF_THE_FORM = ("csrf", "version", "password", "thread", "place", "to", "here", "insert", "language", "decision")


def sent_texts(form: Form, language: str) -> list[tuple[str, str]]:
    """Return what somebody wrote into a form that was refused, each with the name of its field, to be copied.

    Lines of a structure are one text. Passwords and what the form itself holds are left out.
    """
    text, dimensions = translator(language), dimension_names(language)
    lines = [f"{form.get(f'label_{number}', '')}\t{form[f'line_{number}']}".strip() for number in _rows(form)]
    found = [(text("line"), "\n".join(lines))] if any(lines) else []
    for name, value in form.items():
        if not value.strip() or name.startswith(_OF_THE_FORM) or re.fullmatch(r"(label|line|rhyme)_\d+", name):
            continue
        kind, _, dimension = name.partition("_")
        if kind in {"tags", "text"} and dimension in dimensions:
            named = f"{dimensions[dimension]} ({text('tags' if kind == 'tags' else 'text')})"
        else:
            named = text(name) if name in catalogue() else name
        found.append((named, value))
    return found


def _rows(form: Form) -> list[int]:
    """Return the numbers of the rows of a structure editor."""
    return list(itertools.takewhile(lambda number: f"line_{number}" in form, range(MAX_LINES + 1)))
