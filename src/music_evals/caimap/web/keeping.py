"""Acts whose page is shown again where they are refused, with the message and with all that was written.

Where another draft was kept since the page was loaded, both are shown instead, to choose between them part by part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import SequenceMatcher

from music_evals.caimap.machine import ForbiddenStepError
from music_evals.caimap.storage.store import StaleError
from music_evals.caimap.web.app import Answer, Asked, status_of
from music_evals.caimap.web.forms import Row, editor_values, row_fields, rows_of, sent_texts, tidied
from music_evals.caimap.web.wording import refusal
from music_evals.caimap.work.accounts import SignInError
from music_evals.errors import InvalidInputError, MusicEvalsError

__all__ = ["arranged", "kept", "merged", "parts", "written"]

Part = list[Row] | str
"""Rows of a structure that stand together, or the text of a field."""


def kept(
    page: Callable[[Asked], Answer], act: Callable[[Asked], Answer | None], *, form: str = "fields", then: str = ""
) -> Callable[[Asked], Answer]:
    """Return an act that shows its page again where it is refused.

    Where the page itself is refused too, as nothing of it is left, that refusal goes on; it shows what was sent.

    Parameters
    ----------
    page, act
        What shows the page, and what is done.
    form
        Under which name the page knows what was written: a page with several forms has one for each.
    then
        Address of the page that is gone to where the act answers nothing.

    """

    def keeping(asked: Asked) -> Answer:
        try:
            return act(_chosen(page, asked)) or Answer(go_to=then)
        except (InvalidInputError, StaleError, ForbiddenStepError, SignInError) as error:
            return _again(error, page, asked, form)

    return keeping


def arranged(page: Callable[[Asked], Answer]) -> Callable[[Asked], Answer]:
    """Return the act of an editor of structures that keeps nothing and shows its page again, its rows tidied."""

    def arranging(asked: Asked) -> Answer:
        shown = page(asked)
        if _version(shown, asked) != asked.version:
            raise StaleError("this has changed since the page was loaded", kind="task_changed")
        return shown._replace(values={**(shown.values or {}), **editor_values(tidied(asked.form))})

    return kept(page, arranging)


def _version(shown: Answer, asked: Asked) -> int:
    """Return the version of what a page shows now; that of the form where it has none."""
    return int(getattr((shown.values or {}).get("seen"), "version", asked.version))


def _chosen(page: Callable[[Asked], Answer], asked: Asked) -> Asked:
    """Return what was asked, with one draft made of two where somebody chose between them."""
    if "merges" not in asked.form:
        return asked
    fields = (page(asked).values or {}).get("fields", {})
    return asked._replace(form={**merged(fields, written(asked.form), asked.form), "version": str(asked.version)})


def _again(error: MusicEvalsError, page: Callable[[Asked], Answer], asked: Asked, form: str) -> Answer:
    """Show a page again with what was written, and both drafts side by side where another one was kept meanwhile."""
    shown, typed, language = page(asked), written(asked.form), asked.language
    values, version = dict(shown.values or {}), _version(shown, asked)
    if version != asked.version and not isinstance(error, StaleError):
        error = StaleError("this has changed since the page was loaded", kind="task_changed")
    values |= {"message": refusal(error, language), "sent": sent_texts(asked.form, language)}
    if "choice" in values and form == "fields" and typed and (isinstance(error, StaleError) or "merges" in asked.form):
        values |= {"typed": typed, "version": version, "parts": []}
        for key, ours, theirs in parts(values["fields"], typed):
            if ours != theirs:
                name = [*sent_texts({key: key}, language), (key, "")][0][0]
                values["parts"].append((key, name, _texts(ours), _texts(theirs)))
        if values["parts"]:
            return Answer("merge.html", values, status=status_of(error))
    return shown._replace(values={**values, **({form: dict(asked.form)} if typed else {})}, status=status_of(error))


# two drafts of one form


def written(form: Mapping[str, str]) -> dict[str, str]:
    """Return what somebody wrote into a form, as it is kept: split lines have rows of their own."""
    of_the_form = re.compile("csrf|version|sure|merges|take(_.*)?")
    fields = {name: value for name, value in form.items() if not of_the_form.fullmatch(name)}
    return tidied(fields) if "line_0" in fields else fields


def parts(kept: Mapping[str, str], page: Mapping[str, str]) -> list[tuple[str, Part, Part]]:
    """Return the parts of two drafts: a key, and what each has; rows lie beside each other, however many there are."""
    ours, theirs = rows_of(kept), rows_of(page)
    steps = SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
    rows = [(f"rows_{number}", ours[a:b], theirs[c:d]) for number, (_, a, b, c, d) in enumerate(steps)]
    names = dict.fromkeys(name for name in (*kept, *page) if not re.search(r"_\d+$", name))
    return [*rows, *((name, kept.get(name, ""), page.get(name, "")) for name in names)]


def merged(kept: Mapping[str, str], page: Mapping[str, str], choice: Mapping[str, str]) -> dict[str, str]:
    """Return one draft of two, of each part the one that ``take_`` and its key, or ``take``, names: kept or page.

    Raises
    ------
    InvalidInputError
        A part in which they differ was not chosen.

    """
    rows: list[Row] = []
    fields: dict[str, str] = {}
    for key, ours, theirs in parts(kept, page):
        taken = choice.get(f"take_{key}", choice.get("take")) if ours != theirs else "page"
        if taken not in {"kept", "page"}:
            raise InvalidInputError(f"choose one of both drafts for each part; {key} is open", kind="no_choice")
        part = ours if taken == "kept" else theirs
        if isinstance(part, list):
            rows += part
        elif part:
            fields[key] = part
    return row_fields(rows, fields.pop("theme", "")) | fields if rows else fields


def _texts(part: Part) -> list[str]:
    if isinstance(part, str):
        return part.splitlines()
    return [" ".join(filter(None, (row.label, row.line, "✓" * row.rhymes, *row[3:]))) for row in part]
