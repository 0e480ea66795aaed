"""Actions whose page is rendered again if they are refused, with the message and with the fields of the form.

If another draft was saved since the page was loaded, both are shown instead, to choose between them part by part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import SequenceMatcher

from music_evals.caimap.machine import ForbiddenStepError
from music_evals.caimap.storage.store import StaleError
from music_evals.caimap.web.app import Request, Response, status_of
from music_evals.caimap.web.forms import Row, editor_values, row_fields, rows_of, sent_texts, tidied
from music_evals.caimap.web.wording import refusal
from music_evals.caimap.work.accounts import SignInError
from music_evals.errors import InvalidInputError, MusicEvalsError

__all__ = ["merged", "parts", "reformat_rows", "rerender_on_error", "written"]

Part = list[Row] | str
"""Rows of a structure that stand together, or the text of a field."""


def rerender_on_error(
    page: Callable[[Request], Response],
    act: Callable[[Request], Response | None],
    *,
    form: str = "fields",
    then: str = "",
) -> Callable[[Request], Response]:
    """Return an action that renders its page again if it is refused.

    If the page itself is refused too, that error is raised; its page shows what was sent.

    Parameters
    ----------
    page, act
        Render the page, and perform the action.
    form
        Name under which the template knows the fields: a page with several forms has one for each.
    then
        Address of the redirect if the action returns nothing.

    """

    def handle(request: Request) -> Response:
        try:
            return act(_merged_request(page, request)) or Response(go_to=then)
        except (InvalidInputError, StaleError, ForbiddenStepError, SignInError) as error:
            return _rerender(error, page, request, form)

    return handle


def reformat_rows(page: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """Return an action of the editor of structures that saves nothing and renders its page again, its rows tidied."""

    def handle(request: Request) -> Response:
        response = page(request)
        if _version(response, request) != request.version:
            raise StaleError("this has changed since the page was loaded", kind="task_changed")
        return response._replace(values={**(response.values or {}), **editor_values(tidied(request.form))})

    return rerender_on_error(page, handle)


def _version(response: Response, request: Request) -> int:
    """Return the version of what a page shows now; that of the form if the page has none."""
    return int(getattr((response.values or {}).get("view"), "version", request.version))


def _merged_request(page: Callable[[Request], Response], request: Request) -> Request:
    """Return the request, with one draft made of two if the form chooses between them."""
    if "merges" not in request.form:
        return request
    fields = (page(request).values or {}).get("fields", {})
    return request._replace(
        form={**merged(fields, written(request.form), request.form), "version": str(request.version)}
    )


def _rerender(error: MusicEvalsError, page: Callable[[Request], Response], request: Request, form: str) -> Response:
    """Render a page again with the fields of the form, or both drafts if another one was saved meanwhile."""
    response, typed, language = page(request), written(request.form), request.language
    values, version = dict(response.values or {}), _version(response, request)
    if version != request.version and not isinstance(error, StaleError):
        error = StaleError("this has changed since the page was loaded", kind="task_changed")
    values |= {"message": refusal(error, language), "sent": sent_texts(request.form, language)}
    if (
        "choice" in values
        and form == "fields"
        and typed
        and (isinstance(error, StaleError) or "merges" in request.form)
    ):
        values |= {"typed": typed, "version": version, "parts": []}
        for key, ours, theirs in parts(values["fields"], typed):
            if ours != theirs:
                name = [*sent_texts({key: key}, language), (key, "")][0][0]
                values["parts"].append((key, name, _texts(ours), _texts(theirs)))
        if values["parts"]:
            return Response("merge.html", values, status=status_of(error))
    return response._replace(
        values={**values, **({form: dict(request.form)} if typed else {})}, status=status_of(error)
    )


# two drafts of one form


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
    """Return one draft of two, of each part the one that ``take_`` and its key, or ``take``, names: kept or page.

    Raises
    ------
    InvalidInputError
        A part in which they differ was not chosen.

    """
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


def _texts(part: Part) -> list[str]:
    if isinstance(part, str):
        return part.splitlines()
    return [" ".join(filter(None, (row.label, row.line, "✓" * row.rhymes, *row[3:]))) for row in part]
