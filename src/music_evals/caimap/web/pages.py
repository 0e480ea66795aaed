"""All pages, each with the right that it needs: from the request to the service, and from its result to a template.

An action that is refused because of a conflict, or because a rule is broken, renders its form again with the message
and with the fields as they were sent.
"""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any, Final

from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS
from music_evals.caimap import ledger, lexica, listening, machine, structure, waveforms
from music_evals.caimap.description import MAX_TAGS, fewest_tags
from music_evals.caimap.grades import MAX_WARNINGS
from music_evals.caimap.roles import ForbiddenError
from music_evals.caimap.values import ROLES, Description, Structure
from music_evals.caimap.web.app import Page, Request, Response
from music_evals.caimap.web.forms import (
    description_of,
    editor_values,
    row_fields,
    rows_of,
    split_rows,
    structure_fields,
    structure_of,
)
from music_evals.caimap.web.guards import number_of
from music_evals.caimap.web.people_pages import PEOPLE_PAGES
from music_evals.caimap.web.reporting import agreement_values
from music_evals.caimap.web.rerendering import reformat_rows, rerender_on_error, written
from music_evals.caimap.web.training_pages import TRAINING_PAGES, opened, score_page, sheet_from_form
from music_evals.caimap.web.wording import refusal
from music_evals.caimap.web.words import LANGUAGES
from music_evals.caimap.work import (
    accounts,
    annotating,
    comparing,
    inspecting,
    managing,
    people,
    settlements,
    views,
    vocabulary,
    watching,
    weeks,
)
from music_evals.errors import InvalidInputError

__all__ = ["PAGES"]


def _settled(request: Request) -> Response:
    """Show the passes and a form; what the inspector accepted is not shown, and after it was verified no form."""
    song = request.path["song"]
    view = settlements.unsettled(request.service, request.who, song)
    (verified,) = (row for row in settlements.settlements(request.service, request.who) if row.song == song)
    rows = structure.differences(*view.passes) if len(view.passes) == 2 else []
    base = view.passes[0] if view.passes else structure.pre_annotated(view.song)
    values = {"view": view, "rows": rows, "verified": verified, "sent": []}
    return Response("settled.html", values | editor_values(structure_fields(base)), waveform=True)


def _verify_settled(request: Request) -> Response:
    """Keep the verification, and show at once how far the two agree."""
    song = request.path["song"]
    rows = settlements.verify_settlement(request.service, request.who, song, structure_of(request.form))
    return Response("settled_both.html", {"song": song, "rows": rows})


# everybody


def _home(request: Request) -> Response:
    role = request.visit.person.role if request.visit else ""
    return Response(go_to={"inspector": "/inspect", "administrator": "/manage"}.get(role, "/work"))


def _sign_in(_: Request) -> Response:
    return Response("sign_in.html", {"fields": {}})


def _do_sign_in(request: Request) -> Response:
    token = accounts.sign_in(request.service, request.form.get("name", ""), request.form.get("password", ""))
    visit = accounts.visit(request.service, token)
    return Response(go_to="/", session=token, language=visit.language if visit else "")


def _do_sign_out(request: Request) -> Response:
    accounts.sign_out_all(request.service, request.who)
    return Response(go_to="/sign-in", session="")


def _invitation(request: Request) -> Response:
    return Response("invitation.html", {"fields": {}, "token": request.path["token"]})


def _accept(request: Request) -> None:
    form = request.form
    person = accounts.accept(
        request.service,
        request.path["token"],
        form.get("name", ""),
        form.get("password", ""),
        consents="consents" in form,
    )
    accounts.set_language(request.service, person, request.language)


def _language(request: Request) -> Response:
    """Keep the language of an account, or of a browser, and go back to where its reader was."""
    language, path = request.form.get("language", ""), request.form.get("to", "")
    if language not in LANGUAGES:
        raise InvalidInputError(f"a language must be one of {', '.join(LANGUAGES)}, got {language!r}", kind="language")
    if request.visit is not None:
        accounts.set_language(request.service, request.who, language)
    account = request.provider is not None and path == "/account"  # the one page of a provider that is only read
    while path and not account and not _is_read(path):  # where a form was refused, its page is above
        path = path.rpartition("/")[0]
    return Response(go_to=path or "/", language=language)


def _is_read(path: str) -> bool:
    """Tell whether an address is that of a page that can be read."""
    patterns = (re.sub(r"\{\w+(:int)?\}", lambda match: r"\d+" if match[1] else "[^/]+", page.path)
                for page in PAGES if page.method == "GET")  # fmt: skip
    return any(re.fullmatch(pattern, path) for pattern in patterns)


def _feedback(request: Request) -> Response:
    return Response("feedback.html", {"messages": views.messages(request.service, request.who), "fields": {}})


def _do_feedback(request: Request) -> Response:
    thread = request.form.get("thread", "")
    content, place = request.form.get("content", ""), request.form.get("place", "")
    number = number_of(thread, "thread") if thread else None
    managing.post_message(request.service, request.who, content, thread=number, place=place)
    return Response("said.html") if "here" in request.form else Response(go_to="/feedback")


def _ledger(request: Request) -> Response:
    entries = managing.ledger_of(request.service, request.who)
    values = {"entries": entries, "owed": ledger.balances(entries), "currency": people.currency(request.service)}
    return Response("ledger.html", {**values, "kinds": ledger.ENTRY_KINDS, "fields": {}})


def _ledger_csv(request: Request) -> Response:
    return Response(download=("ledger.csv", ledger.ledger_csv(managing.ledger_of(request.service, request.who))))


# annotators


def _work(request: Request) -> Response:
    values = {"tasks": views.tasks_of(request.service, request.who), "waits": "none" not in request.query}
    values |= {"standing": people.standing(request.service, request.who), "most": MAX_WARNINGS}
    values |= {
        "grades": weeks.graded(request.service, request.who),
        "warnings": weeks.cautions(request.service, request.who),
    }
    values |= {"so_far": weeks.so_far(request.service, request.who)}
    return Response("work.html", {**values, "rests": views.rests(request.service, request.who)})


def _next(request: Request) -> Response:
    return opened(request, annotating.take_next(request.service, request.who), "/work?none=1")


def _task(request: Request) -> Response:
    view = views.task_view(request.service, request.who, request.path["number"])
    if view.task.state not in {"assigned", "working"}:
        return _handed_in(view)
    listening_so_far = annotating.task_listening(request.service, request.who, request.path["number"])
    shared = {
        "view": view,
        "skip": {},
        "reasons": structure.SCREENING_REASONS,
        "rests": views.rests(request.service, request.who),
        "listening": listening_so_far,
        "writes": listening_so_far.may_write(view.song.duration_sec),
        "choice": f"/task/{view.task.id}/save",
    }
    if view.task.kind == "structure":
        has_rows = "line_0" in view.draft
        draft = row_fields(split_rows(rows_of(view.draft)), view.draft.get("theme", "")) if has_rows else {}
        fields = draft or view.fields(structure_fields)
        return Response("structure.html", shared | editor_values(fields), waveform=True)
    group = view.task.kind
    dimensions = {name: row for name, row in DIMENSIONS[group].items() if name != AUDIO_EFFECTS}
    limits = {name: (fewest_tags(group, name), MAX_TAGS) for name in dimensions}
    values = {**shared, "fields": view.draft, "dimensions": dimensions, "limits": limits, "group": group}
    return Response("description.html", values, waveform=True)


def _handed_in(view: views.TaskView) -> Response:
    """Show what was handed in, to be read alone."""
    dimensions = DIMENSIONS.get(view.task.kind, {})
    return Response("handed_in.html", {"view": view, "dimensions": dimensions, "fields": {}}, waveform=True)


def _save(request: Request) -> Response:
    annotating.save(request.service, request.who, request.path["number"], request.version, written(request.form))
    return Response(go_to=f"/task/{request.path['number']}")


def _draft(request: Request) -> Response:
    """Keep the draft that the script of the page sends by itself."""
    number = request.path["number"]
    views.task_view(request.service, request.who, number)  # whose it is, before what was sent
    body = request.json if isinstance(request.json, dict) else {}
    fields, version = body.get("fields"), body.get("version")
    if not isinstance(fields, dict) or not all(isinstance(value, str) for value in fields.values()):
        raise InvalidInputError("expected the fields of a draft, as texts", kind="draft_fields")
    if type(version) is not int:
        raise InvalidInputError("expected the version of the task that the page shows", kind="draft_fields")
    draft = {str(name): value for name, value in fields.items() if name not in {"csrf", "version"}}
    return Response(values={"version": annotating.save(request.service, request.who, number, version, draft)})


def _submit(request: Request) -> None:
    number = request.path["number"]
    kind = views.task_view(request.service, request.who, number).task.kind
    annotation: Structure | Description
    annotation = structure_of(request.form) if kind == "structure" else description_of(request.form, kind)
    annotating.submit(request.service, request.who, number, request.version, annotation)


def _skip(request: Request) -> None:
    reason, note = request.form.get("reason", ""), request.form.get("note", "")
    annotating.screen(request.service, request.who, request.path["number"], request.version, reason=reason, note=note)


def _restart(request: Request) -> Response:
    """Ask first, with the draft saved; then begin to listen anew."""
    number, version = request.path["number"], request.version
    if "sure" in request.form:
        annotating.restart_listening(request.service, request.who, number, version)
        return Response(go_to=f"/task/{number}")
    draft, view = written(request.form), views.task_view(request.service, request.who, number)
    may_write = annotating.task_listening(request.service, request.who, number).may_write(view.song.duration_sec)
    if may_write and any(draft.values()) and draft != view.draft:
        version = annotating.save(request.service, request.who, number, version, draft)
    return Response("restart.html", {"view": view, "version": version})


def _events(request: Request) -> Response:
    reports = request.json.get("events", []) if isinstance(request.json, dict) else []
    if not isinstance(reports, list) or not all(isinstance(report, dict) for report in reports):
        raise InvalidInputError("expected a list of events", kind="event")
    number = request.path["number"]
    listening_so_far = annotating.record(request.service, request.who, number, reports)
    duration = views.task_view(request.service, request.who, number).song.duration_sec
    broken = listening.broken_rules(listening_so_far)
    message = "" if broken is None else refusal(broken, request.language)
    return Response(
        values={**listening_so_far._asdict(), "writes": listening_so_far.may_write(duration), "told": message}
    )


def _recording(request: Request) -> Path:
    """Return the recording of a task's song."""
    name = views.task_view(request.service, request.who, request.path["number"]).song.audio
    path = (request.audio / name).resolve()
    if not name or not path.is_relative_to(request.audio.resolve()) or not path.is_file():
        raise ForbiddenError("this song has no recording", kind="no_recording")
    return path


def _audio(request: Request) -> Response:
    return Response(file=_recording(request))


def _waveform(request: Request) -> Response:
    return Response(values={"peaks": waveforms.kept_peaks(_recording(request), request.audio.with_name("waveforms"))})


def _lexicon(request: Request) -> Response:
    terms = vocabulary.terms_of(request.service, request.path["group"], request.path["dimension"])
    query = next((value for name, value in request.query.items() if name.startswith("tags_")), "")
    last = re.split("[、,，]", query)[-1]
    return Response("terms.html", {"terms": lexica.search(terms, last), "dimension": request.path["dimension"]})


# inspectors


def _inspect(request: Request) -> Response:
    songs, tasks = inspecting.waiting(request.service, request.who)
    return Response("inspect.html", {"songs": songs, "tasks": tasks})


def _song(request: Request) -> Response:
    view = views.song_view(request.service, request.who, request.path["song"])
    first, second = view.passes
    base = second if request.query.get("base") == "second" else first
    values = {"view": view, "rows": structure.differences(first, second)}
    if view.accepted is not None:  # it stays, and is laid beside what somebody else wrote
        base, values["choice"] = view.accepted, ""
    return Response("settle.html", values | editor_values(structure_fields(base)), waveform=True)


def _settle(request: Request) -> None:
    inspecting.settle(request.service, request.who, request.path["song"], request.version, structure_of(request.form))


def _score(request: Request) -> None:
    inspecting.score(request.service, sheet_from_form(request), request.version)


# administrators


def _manage(request: Request) -> Response:
    ready = views.decisions(request.service, request.who)
    return Response(
        "manage.html", {"ready": ready, "roles": ROLES, "invitation": "", "fields": {}, **_numbers(request)}
    )


def _numbers(request: Request) -> dict[str, Any]:
    states = machine.states(machine.SONG)
    progress = managing.progress(request.service, request.who)
    return {"progress": progress, "states": states, "currency": people.currency(request.service)}


def _progress(request: Request) -> Response:
    return Response("progress.html", _numbers(request))


def _invite(request: Request) -> Response:
    token = accounts.invite(request.service, request.who, request.form.get("role", ""))
    page = _manage(request)
    return page._replace(values={**(page.values or {}), "invitation": f"/invitation/{token}"})


def _screening(request: Request) -> None:
    keep = request.form.get("decision") == "keep"
    managing.decide_screening(request.service, request.who, request.path["song"], request.version, keep=keep)


def _decide(request: Request) -> None:
    returned = [group for group in DIMENSIONS if request.form.get("decision") == f"return_{group}"]
    if not returned and request.form.get("decision") != "finish":
        raise InvalidInputError("a song is let in, or one of its descriptions is returned", kind="kind_of_task")
    managing.review_song(request.service, request.who, request.path["song"], request.version, returned=returned)


def _week(request: Request) -> None:
    try:
        monday = dt.date.fromisoformat(request.form.get("monday", ""))
    except ValueError as error:
        raise InvalidInputError("a date is year-month-day", kind="date") from error
    managing.close_week(request.service, request.who, monday)


def _enter(request: Request) -> None:
    form = request.form
    person, cents = (number_of(form.get(name, ""), name) for name in ("person", "cents"))
    entry = ledger.Entry(person, form.get("kind", ""), cents, form.get("reason", ""))
    managing.add_ledger_entry(request.service, request.who, entry)


def _analytics(request: Request) -> Response:
    return Response("analytics.html", {"habits": watching.habits(request.service, request.who)})


def _submissions(request: Request) -> Response:
    return Response(
        "person.html", {"tasks": watching.submissions(request.service, request.who, request.path["person"])}
    )


def _submission(request: Request) -> Response:
    return _handed_in(views.task_view(request.service, request.who, request.path["number"]))


def _verifications(request: Request) -> Response:
    settled = settlements.settlements(request.service, request.who)
    return Response(
        "verify.html", {"sampled": watching.verifications(request.service, request.who), "settled": settled}
    )


def _agreement(request: Request) -> Response:
    agreement = comparing.study_agreement(request.service, request.who)
    return Response("agreement.html", agreement_values(agreement, request.language))


def _verify(request: Request) -> None:
    watching.verify(request.service, sheet_from_form(request))


PAGES: Final = (
    Page("GET", "/", "ask", _home),
    Page("GET", "/sign-in", "public", _sign_in),
    Page("POST", "/sign-in", "public", rerender_on_error(_sign_in, _do_sign_in), guessable=True),
    Page("POST", "/language", "public", _language),
    Page("POST", "/sign-out", "ask", _do_sign_out),
    Page("GET", "/invitation/{token}", "public", _invitation),
    Page(
        "POST",
        "/invitation/{token}",
        "public",
        rerender_on_error(_invitation, _accept, then="/sign-in"),
        guessable=True,
    ),
    Page("GET", "/feedback", "ask", _feedback),
    Page("POST", "/feedback", "ask", rerender_on_error(_feedback, _do_feedback)),
    Page("GET", "/ledger", "ask", _ledger),
    Page("GET", "/work", "annotate", _work),
    Page("POST", "/work/next", "annotate", _next),
    Page("GET", "/task/{number:int}", "annotate", _task),
    Page("POST", "/task/{number:int}/save", "annotate", rerender_on_error(_task, _save)),
    Page("POST", "/task/{number:int}/draft", "annotate", _draft),
    Page("POST", "/task/{number:int}/submit", "annotate", rerender_on_error(_task, _submit, then="/work")),
    Page("POST", "/task/{number:int}/skip", "annotate", rerender_on_error(_task, _skip, form="skip", then="/work")),
    Page("POST", "/task/{number:int}/restart", "annotate", rerender_on_error(_task, _restart)),
    Page("POST", "/task/{number:int}/events", "annotate", _events),
    Page("GET", "/task/{number:int}/audio", "ask", _audio),
    Page("GET", "/task/{number:int}/waveform", "ask", _waveform),
    Page("GET", "/lexicon/{group}/{dimension}", "annotate", _lexicon),
    Page("GET", "/inspect", "inspect", _inspect),
    Page("GET", "/inspect/song/{song}", "inspect", _song),
    Page("POST", "/inspect/song/{song}", "inspect", rerender_on_error(_song, _settle, then="/inspect")),
    Page("POST", "/inspect/song/{song}/rows", "inspect", reformat_rows(_song)),
    Page("GET", "/inspect/task/{number:int}", "inspect", score_page),
    Page("POST", "/inspect/task/{number:int}", "inspect", rerender_on_error(score_page, _score, then="/inspect")),
    Page("GET", "/manage", "manage", _manage),
    Page("GET", "/manage/progress", "manage", _progress),
    Page("POST", "/manage/invite", "manage", rerender_on_error(_manage, _invite)),
    Page("POST", "/manage/screening/{song}", "manage", rerender_on_error(_manage, _screening, then="/manage")),
    Page("POST", "/manage/song/{song}", "manage", rerender_on_error(_manage, _decide, then="/manage")),
    Page("POST", "/manage/week", "manage", rerender_on_error(_manage, _week, then="/manage")),
    Page("POST", "/ledger", "manage", rerender_on_error(_ledger, _enter, then="/ledger")),
    Page("GET", "/ledger.csv", "ask", _ledger_csv),
    Page("GET", "/manage/analytics", "manage", _analytics),
    Page("GET", "/manage/person/{person:int}", "manage", _submissions),
    Page("GET", "/manage/task/{number:int}", "manage", _submission),
    Page("GET", "/manage/agreement", "manage", _agreement),
    Page("GET", "/manage/verify", "manage", _verifications),
    Page("GET", "/manage/verify/{number:int}", "manage", score_page),
    Page(
        "POST", "/manage/verify/{number:int}", "manage", rerender_on_error(score_page, _verify, then="/manage/verify")
    ),
    Page("GET", "/manage/settled/{song}", "manage", _settled),
    Page("POST", "/manage/settled/{song}", "manage", rerender_on_error(_settled, _verify_settled)),
    Page("POST", "/manage/settled/{song}/rows", "manage", reformat_rows(_settled)),
    *TRAINING_PAGES,
    *PEOPLE_PAGES,
)
"""Every page there is."""
