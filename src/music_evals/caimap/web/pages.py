"""All pages, each with the right that it needs: requests to acts, acts to what is shown.

An act that is refused because somebody was quicker, or because a rule was broken, shows the form again with the message
and with all that was written in it.
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
from music_evals.caimap.web.app import Answer, Asked, Page
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
from music_evals.caimap.web.keeping import arranged, kept, written
from music_evals.caimap.web.people_pages import PEOPLE_PAGES
from music_evals.caimap.web.reporting import agreement_values
from music_evals.caimap.web.training_pages import TRAINING_PAGES, asked_sheet, opened, score_page
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


def _settled(asked: Asked) -> Answer:
    """Show the passes and a form; what the inspector accepted is not shown, and after it was verified no form."""
    song = asked.path["song"]
    seen = settlements.unsettled(asked.desk, asked.who, song)
    (verified,) = (row for row in settlements.settlements(asked.desk, asked.who) if row.song == song)
    rows = structure.differences(*seen.passes) if len(seen.passes) == 2 else []
    base = seen.passes[0] if seen.passes else structure.pre_annotated(seen.song)
    values = {"seen": seen, "rows": rows, "verified": verified, "sent": []}
    return Answer("settled.html", values | editor_values(structure_fields(base)), waveform=True)


def _verify_settled(asked: Asked) -> Answer:
    """Keep the verification, and show at once how far the two agree."""
    song = asked.path["song"]
    rows = settlements.verify_settlement(asked.desk, asked.who, song, structure_of(asked.form))
    return Answer("settled_both.html", {"song": song, "rows": rows})


# everybody


def _home(asked: Asked) -> Answer:
    role = asked.visit.person.role if asked.visit else ""
    return Answer(go_to={"inspector": "/inspect", "administrator": "/manage"}.get(role, "/work"))


def _sign_in(_: Asked) -> Answer:
    return Answer("sign_in.html", {"fields": {}})


def _do_sign_in(asked: Asked) -> Answer:
    token = accounts.sign_in(asked.desk, asked.form.get("name", ""), asked.form.get("password", ""))
    visit = accounts.visit(asked.desk, token)
    return Answer(go_to="/", session=token, language=visit.language if visit else "")


def _do_sign_out(asked: Asked) -> Answer:
    accounts.sign_out_all(asked.desk, asked.who)
    return Answer(go_to="/sign-in", session="")


def _invitation(asked: Asked) -> Answer:
    return Answer("invitation.html", {"fields": {}, "token": asked.path["token"]})


def _accept(asked: Asked) -> None:
    form = asked.form
    made = accounts.accept(
        asked.desk, asked.path["token"], form.get("name", ""), form.get("password", ""), consents="consents" in form
    )
    accounts.speak(asked.desk, made, asked.language)


def _language(asked: Asked) -> Answer:
    """Keep the language of an account, or of a browser, and go back to where its reader was."""
    language, path = asked.form.get("language", ""), asked.form.get("to", "")
    if language not in LANGUAGES:
        raise InvalidInputError(f"a language must be one of {', '.join(LANGUAGES)}, got {language!r}", kind="language")
    if asked.visit is not None:
        accounts.speak(asked.desk, asked.who, language)
    account = asked.provider is not None and path == "/account"  # the one page of a provider that is only read
    while path and not account and not _is_read(path):  # where a form was refused, its page is above
        path = path.rpartition("/")[0]
    return Answer(go_to=path or "/", language=language)


def _is_read(path: str) -> bool:
    """Tell whether an address is that of a page that can be read."""
    patterns = (re.sub(r"\{\w+(:int)?\}", lambda found: r"\d+" if found[1] else "[^/]+", page.path)
                for page in PAGES if page.method == "GET")  # fmt: skip
    return any(re.fullmatch(pattern, path) for pattern in patterns)


def _feedback(asked: Asked) -> Answer:
    return Answer("feedback.html", {"messages": views.messages(asked.desk, asked.who), "fields": {}})


def _do_feedback(asked: Asked) -> Answer:
    thread = asked.form.get("thread", "")
    content, place = asked.form.get("content", ""), asked.form.get("place", "")
    number = number_of(thread, "thread") if thread else None
    managing.say(asked.desk, asked.who, content, thread=number, place=place)
    return Answer("said.html") if "here" in asked.form else Answer(go_to="/feedback")


def _ledger(asked: Asked) -> Answer:
    entries = managing.ledger_of(asked.desk, asked.who)
    shown = {"entries": entries, "owed": ledger.balances(entries), "currency": people.currency(asked.desk)}
    return Answer("ledger.html", {**shown, "kinds": ledger.ENTRY_KINDS, "fields": {}})


def _ledger_csv(asked: Asked) -> Answer:
    return Answer(download=("ledger.csv", ledger.ledger_csv(managing.ledger_of(asked.desk, asked.who))))


# annotators


def _work(asked: Asked) -> Answer:
    values = {"tasks": views.tasks_of(asked.desk, asked.who), "waits": "none" not in asked.query}
    values |= {"standing": people.standing(asked.desk, asked.who), "most": MAX_WARNINGS}
    values |= {"grades": weeks.graded(asked.desk, asked.who), "warnings": weeks.cautions(asked.desk, asked.who)}
    values |= {"so_far": weeks.so_far(asked.desk, asked.who)}
    return Answer("work.html", {**values, "rests": views.rests(asked.desk, asked.who)})


def _next(asked: Asked) -> Answer:
    return opened(asked, annotating.take_next(asked.desk, asked.who), "/work?none=1")


def _task(asked: Asked) -> Answer:
    seen = views.task_view(asked.desk, asked.who, asked.path["number"])
    if seen.task.state not in {"assigned", "working"}:
        return _handed_in(seen)
    found = annotating.heard(asked.desk, asked.who, asked.path["number"])
    shared = {
        "seen": seen,
        "skip": {},
        "reasons": structure.SCREENING_REASONS,
        "rests": views.rests(asked.desk, asked.who),
        "heard": found,
        "writes": found.may_write(seen.song.duration_sec),
        "choice": f"/task/{seen.task.id}/save",
    }
    if seen.task.kind == "structure":
        has_rows = "line_0" in seen.draft
        draft = row_fields(split_rows(rows_of(seen.draft)), seen.draft.get("theme", "")) if has_rows else {}
        fields = draft or seen.fields(structure_fields)
        return Answer("structure.html", shared | editor_values(fields), waveform=True)
    group = seen.task.kind
    asked_for = {name: row for name, row in DIMENSIONS[group].items() if name != AUDIO_EFFECTS}
    limits = {name: (fewest_tags(group, name), MAX_TAGS) for name in asked_for}
    values = {**shared, "fields": seen.draft, "dimensions": asked_for, "limits": limits, "group": group}
    return Answer("description.html", values, waveform=True)


def _handed_in(seen: views.TaskView) -> Answer:
    """Show what was handed in, to be read alone."""
    dimensions = DIMENSIONS.get(seen.task.kind, {})
    return Answer("handed_in.html", {"seen": seen, "dimensions": dimensions, "fields": {}}, waveform=True)


def _save(asked: Asked) -> Answer:
    annotating.save(asked.desk, asked.who, asked.path["number"], asked.version, written(asked.form))
    return Answer(go_to=f"/task/{asked.path['number']}")


def _draft(asked: Asked) -> Answer:
    """Keep the draft that the script of the page sends by itself."""
    number = asked.path["number"]
    views.task_view(asked.desk, asked.who, number)  # whose it is, before what was sent
    given = asked.json if isinstance(asked.json, dict) else {}
    fields, version = given.get("fields"), given.get("version")
    if not isinstance(fields, dict) or not all(isinstance(value, str) for value in fields.values()):
        raise InvalidInputError("expected the fields of a draft, as texts", kind="draft_fields")
    if type(version) is not int:
        raise InvalidInputError("expected the version of the task that the page shows", kind="draft_fields")
    kept = {str(name): value for name, value in fields.items() if name not in {"csrf", "version"}}
    return Answer(values={"version": annotating.save(asked.desk, asked.who, number, version, kept)})


def _submit(asked: Asked) -> None:
    number = asked.path["number"]
    kind = views.task_view(asked.desk, asked.who, number).task.kind
    given: Structure | Description
    given = structure_of(asked.form) if kind == "structure" else description_of(asked.form, kind)
    annotating.submit(asked.desk, asked.who, number, asked.version, given)


def _skip(asked: Asked) -> None:
    reason, note = asked.form.get("reason", ""), asked.form.get("note", "")
    annotating.screen(asked.desk, asked.who, asked.path["number"], asked.version, reason=reason, note=note)


def _restart(asked: Asked) -> Answer:
    """Ask first, with the draft saved; then begin to listen anew."""
    number, version = asked.path["number"], asked.version
    if "sure" in asked.form:
        annotating.restart_listening(asked.desk, asked.who, number, version)
        return Answer(go_to=f"/task/{number}")
    draft, seen = written(asked.form), views.task_view(asked.desk, asked.who, number)
    may_write = annotating.heard(asked.desk, asked.who, number).may_write(seen.song.duration_sec)
    if may_write and any(draft.values()) and draft != seen.draft:
        version = annotating.save(asked.desk, asked.who, number, version, draft)
    return Answer("restart.html", {"seen": seen, "version": version})


def _events(asked: Asked) -> Answer:
    reports = asked.json.get("events", []) if isinstance(asked.json, dict) else []
    if not isinstance(reports, list) or not all(isinstance(report, dict) for report in reports):
        raise InvalidInputError("expected a list of events", kind="event")
    number = asked.path["number"]
    found = annotating.record(asked.desk, asked.who, number, reports)
    duration = views.task_view(asked.desk, asked.who, number).song.duration_sec
    broken = listening.broken_rules(found)
    told = "" if broken is None else refusal(broken, asked.language)
    return Answer(values={**found._asdict(), "writes": found.may_write(duration), "told": told})


def _recording(asked: Asked) -> Path:
    """Return the recording of a task's song."""
    name = views.task_view(asked.desk, asked.who, asked.path["number"]).song.audio
    path = (asked.audio / name).resolve()
    if not name or not path.is_relative_to(asked.audio.resolve()) or not path.is_file():
        raise ForbiddenError("this song has no recording", kind="no_recording")
    return path


def _audio(asked: Asked) -> Answer:
    return Answer(file=_recording(asked))


def _waveform(asked: Asked) -> Answer:
    return Answer(values={"peaks": waveforms.kept_peaks(_recording(asked), asked.audio.with_name("waveforms"))})


def _lexicon(asked: Asked) -> Answer:
    terms = vocabulary.terms_of(asked.desk, asked.path["group"], asked.path["dimension"])
    query = next((value for name, value in asked.query.items() if name.startswith("tags_")), "")
    last = re.split("[、,，]", query)[-1]
    return Answer("terms.html", {"terms": lexica.search(terms, last), "dimension": asked.path["dimension"]})


# inspectors


def _inspect(asked: Asked) -> Answer:
    songs, tasks = inspecting.waiting(asked.desk, asked.who)
    return Answer("inspect.html", {"songs": songs, "tasks": tasks})


def _song(asked: Asked) -> Answer:
    seen = views.song_view(asked.desk, asked.who, asked.path["song"])
    first, second = seen.passes
    base = second if asked.query.get("base") == "second" else first
    values = {"seen": seen, "rows": structure.differences(first, second)}
    if seen.accepted is not None:  # it stays, and is laid beside what somebody else wrote
        base, values["choice"] = seen.accepted, ""
    return Answer("settle.html", values | editor_values(structure_fields(base)), waveform=True)


def _settle(asked: Asked) -> None:
    inspecting.settle(asked.desk, asked.who, asked.path["song"], asked.version, structure_of(asked.form))


def _score(asked: Asked) -> None:
    inspecting.score(asked.desk, asked_sheet(asked), asked.version)


# administrators


def _manage(asked: Asked) -> Answer:
    ready = views.decisions(asked.desk, asked.who)
    return Answer("manage.html", {"ready": ready, "roles": ROLES, "invitation": "", "fields": {}, **_numbers(asked)})


def _numbers(asked: Asked) -> dict[str, Any]:
    states = machine.states(machine.SONG)
    found = managing.progress(asked.desk, asked.who)
    return {"progress": found, "states": states, "currency": people.currency(asked.desk)}


def _progress(asked: Asked) -> Answer:
    return Answer("progress.html", _numbers(asked))


def _invite(asked: Asked) -> Answer:
    token = accounts.invite(asked.desk, asked.who, asked.form.get("role", ""))
    page = _manage(asked)
    return page._replace(values={**(page.values or {}), "invitation": f"/invitation/{token}"})


def _screening(asked: Asked) -> None:
    keep = asked.form.get("decision") == "keep"
    managing.decide_screening(asked.desk, asked.who, asked.path["song"], asked.version, keep=keep)


def _decide(asked: Asked) -> None:
    returned = [group for group in DIMENSIONS if asked.form.get("decision") == f"return_{group}"]
    if not returned and asked.form.get("decision") != "finish":
        raise InvalidInputError("a song is let in, or one of its descriptions is returned", kind="kind_of_task")
    managing.decide(asked.desk, asked.who, asked.path["song"], asked.version, returned=returned)


def _week(asked: Asked) -> None:
    try:
        monday = dt.date.fromisoformat(asked.form.get("monday", ""))
    except ValueError as error:
        raise InvalidInputError("a date is year-month-day", kind="date") from error
    managing.close_week(asked.desk, asked.who, monday)


def _enter(asked: Asked) -> None:
    form = asked.form
    person, cents = (number_of(form.get(name, ""), name) for name in ("person", "cents"))
    entry = ledger.Entry(person, form.get("kind", ""), cents, form.get("reason", ""))
    managing.enter(asked.desk, asked.who, entry)


def _analytics(asked: Asked) -> Answer:
    return Answer("analytics.html", {"habits": watching.habits(asked.desk, asked.who)})


def _submissions(asked: Asked) -> Answer:
    return Answer("person.html", {"tasks": watching.submissions(asked.desk, asked.who, asked.path["person"])})


def _submission(asked: Asked) -> Answer:
    return _handed_in(views.task_view(asked.desk, asked.who, asked.path["number"]))


def _verifications(asked: Asked) -> Answer:
    settled = settlements.settlements(asked.desk, asked.who)
    return Answer("verify.html", {"sampled": watching.verifications(asked.desk, asked.who), "settled": settled})


def _agreement(asked: Asked) -> Answer:
    found = comparing.study_agreement(asked.desk, asked.who)
    return Answer("agreement.html", agreement_values(found, asked.language))


def _verify(asked: Asked) -> None:
    watching.verify(asked.desk, asked_sheet(asked))


PAGES: Final = (
    Page("GET", "/", "ask", _home),
    Page("GET", "/sign-in", "public", _sign_in),
    Page("POST", "/sign-in", "public", kept(_sign_in, _do_sign_in), guessable=True),
    Page("POST", "/language", "public", _language),
    Page("POST", "/sign-out", "ask", _do_sign_out),
    Page("GET", "/invitation/{token}", "public", _invitation),
    Page("POST", "/invitation/{token}", "public", kept(_invitation, _accept, then="/sign-in"), guessable=True),
    Page("GET", "/feedback", "ask", _feedback),
    Page("POST", "/feedback", "ask", kept(_feedback, _do_feedback)),
    Page("GET", "/ledger", "ask", _ledger),
    Page("GET", "/work", "annotate", _work),
    Page("POST", "/work/next", "annotate", _next),
    Page("GET", "/task/{number:int}", "annotate", _task),
    Page("POST", "/task/{number:int}/save", "annotate", kept(_task, _save)),
    Page("POST", "/task/{number:int}/draft", "annotate", _draft),
    Page("POST", "/task/{number:int}/submit", "annotate", kept(_task, _submit, then="/work")),
    Page("POST", "/task/{number:int}/skip", "annotate", kept(_task, _skip, form="skip", then="/work")),
    Page("POST", "/task/{number:int}/restart", "annotate", kept(_task, _restart)),
    Page("POST", "/task/{number:int}/events", "annotate", _events),
    Page("GET", "/task/{number:int}/audio", "ask", _audio),
    Page("GET", "/task/{number:int}/waveform", "ask", _waveform),
    Page("GET", "/lexicon/{group}/{dimension}", "annotate", _lexicon),
    Page("GET", "/inspect", "inspect", _inspect),
    Page("GET", "/inspect/song/{song}", "inspect", _song),
    Page("POST", "/inspect/song/{song}", "inspect", kept(_song, _settle, then="/inspect")),
    Page("POST", "/inspect/song/{song}/rows", "inspect", arranged(_song)),
    Page("GET", "/inspect/task/{number:int}", "inspect", score_page),
    Page("POST", "/inspect/task/{number:int}", "inspect", kept(score_page, _score, then="/inspect")),
    Page("GET", "/manage", "manage", _manage),
    Page("GET", "/manage/progress", "manage", _progress),
    Page("POST", "/manage/invite", "manage", kept(_manage, _invite)),
    Page("POST", "/manage/screening/{song}", "manage", kept(_manage, _screening, then="/manage")),
    Page("POST", "/manage/song/{song}", "manage", kept(_manage, _decide, then="/manage")),
    Page("POST", "/manage/week", "manage", kept(_manage, _week, then="/manage")),
    Page("POST", "/ledger", "manage", kept(_ledger, _enter, then="/ledger")),
    Page("GET", "/ledger.csv", "ask", _ledger_csv),
    Page("GET", "/manage/analytics", "manage", _analytics),
    Page("GET", "/manage/person/{person:int}", "manage", _submissions),
    Page("GET", "/manage/task/{number:int}", "manage", _submission),
    Page("GET", "/manage/agreement", "manage", _agreement),
    Page("GET", "/manage/verify", "manage", _verifications),
    Page("GET", "/manage/verify/{number:int}", "manage", score_page),
    Page("POST", "/manage/verify/{number:int}", "manage", kept(score_page, _verify, then="/manage/verify")),
    Page("GET", "/manage/settled/{song}", "manage", _settled),
    Page("POST", "/manage/settled/{song}", "manage", kept(_settled, _verify_settled)),
    Page("POST", "/manage/settled/{song}/rows", "manage", arranged(_settled)),
    *TRAINING_PAGES,
    *PEOPLE_PAGES,
)
"""Every page there is."""
