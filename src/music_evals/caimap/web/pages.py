"""All pages, each with the right that it needs: requests to acts, acts to what is shown.

An act that is refused because somebody was quicker, or because a rule was broken, shows the form again with the message
and with all that was written in it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS
from music_evals.caimap import assurance, ledger, lexica, machine, structure, waveforms
from music_evals.caimap.description import MAX_TAGS, fewest_tags
from music_evals.caimap.machine import ForbiddenStepError
from music_evals.caimap.reporting import agreement_values
from music_evals.caimap.roles import ForbiddenError
from music_evals.caimap.storage.store import StaleError
from music_evals.caimap.training import MAX_SPREAD
from music_evals.caimap.values import ROLES, SECTION_KINDS, Description, ScoreSheet, Structure
from music_evals.caimap.web.app import Answer, Asked, Page, status_of
from music_evals.caimap.web.forms import description_of, sheet_of, structure_fields, structure_of
from music_evals.caimap.work import (
    accounts,
    annotating,
    comparing,
    inspecting,
    managing,
    practising,
    views,
    vocabulary,
    watching,
)
from music_evals.errors import InvalidInputError, MusicEvalsError

__all__ = ["PAGES"]

_LABELS: Final = tuple(f"{kind}{number}" for kind in SECTION_KINDS for number in range(1, 7))


def _again(error: MusicEvalsError, page: Answer, asked: Asked) -> Answer:
    """Show a form again, with what is wrong and with what was written."""
    values = {**(page.values or {}), "message": str(error), "fields": dict(asked.form)}
    return page._replace(values=values, status=status_of(error))


def _kept(page: Callable[[Asked], Answer], act: Callable[[Asked], Answer]) -> Callable[[Asked], Answer]:
    """Return an act that shows its page again where it is refused."""

    def keeping(asked: Asked) -> Answer:
        try:
            return act(asked)
        except (InvalidInputError, StaleError, ForbiddenStepError, accounts.SignInError) as error:
            return _again(error, page(asked), asked)

    return keeping


# everybody


def _home(asked: Asked) -> Answer:
    role = asked.visit.person.role if asked.visit else ""
    return Answer(go_to={"inspector": "/inspect", "administrator": "/manage"}.get(role, "/work"))


def _sign_in(_: Asked) -> Answer:
    return Answer("sign_in.html", {"fields": {}})


def _do_sign_in(asked: Asked) -> Answer:
    token = accounts.sign_in(asked.desk, asked.form.get("name", ""), asked.form.get("password", ""))
    return Answer(go_to="/", session=token)


def _do_sign_out(asked: Asked) -> Answer:
    accounts.sign_out_all(asked.desk, asked.who)
    return Answer(go_to="/sign-in", session="")


def _invitation(asked: Asked) -> Answer:
    return Answer("invitation.html", {"fields": {}, "token": asked.path["token"]})


def _accept(asked: Asked) -> Answer:
    form = asked.form
    accounts.accept(
        asked.desk, asked.path["token"], form.get("name", ""), form.get("password", ""), consents="consents" in form
    )
    return Answer(go_to="/sign-in")


def _feedback(asked: Asked) -> Answer:
    return Answer("feedback.html", {"messages": views.messages(asked.desk, asked.who), "fields": {}})


def _do_feedback(asked: Asked) -> Answer:
    thread = asked.form.get("thread", "")
    content, place = asked.form.get("content", ""), asked.form.get("place", "")
    number = int(thread) if thread.isdecimal() else None
    managing.say(asked.desk, asked.who, content, thread=number, place=place)
    return Answer(go_to="/feedback")


def _ledger(asked: Asked) -> Answer:
    entries = managing.ledger_of(asked.desk, asked.who)
    values = {"entries": entries, "owed": ledger.balances(entries), "kinds": ledger.ENTRY_KINDS, "fields": {}}
    return Answer("ledger.html", values)


def _ledger_csv(asked: Asked) -> Answer:
    return Answer(download=("ledger.csv", ledger.ledger_csv(managing.ledger_of(asked.desk, asked.who))))


def _withdraw(asked: Asked) -> Answer:
    managing.withdraw(asked.desk, asked.who, asked.who)
    return Answer(go_to="/sign-in", session="")


# annotators


def _work(asked: Asked) -> Answer:
    values = {"tasks": views.tasks_of(asked.desk, asked.who), "waits": "none" not in asked.query}
    return Answer("work.html", {**values, "rests": views.rests(asked.desk, asked.who)})


def _next(asked: Asked) -> Answer:
    task = annotating.take_next(asked.desk, asked.who)
    if task is None:
        return Answer(go_to="/work?none=1")
    annotating.open_task(asked.desk, asked.who, task.id)
    return Answer(go_to=f"/task/{task.id}")


def _task(asked: Asked) -> Answer:
    seen = views.task_view(asked.desk, asked.who, asked.path["number"])
    found = annotating.heard(asked.desk, asked.who, asked.path["number"])
    shared = {
        "seen": seen,
        "fields": seen.draft or seen.fields(structure_fields),
        "reasons": structure.SCREENING_REASONS,
        "rests": views.rests(asked.desk, asked.who),
        "heard": found,
        "writes": found.may_write(seen.song.duration_sec),
    }
    if seen.task.kind == "structure":
        return Answer("structure.html", {**shared, "labels": _LABELS}, waveform=True)
    group = seen.task.kind
    asked_for = {name: row for name, row in DIMENSIONS[group].items() if name != AUDIO_EFFECTS}
    limits = {name: (fewest_tags(group, name), MAX_TAGS) for name in asked_for}
    values = {**shared, "dimensions": asked_for, "limits": limits, "group": group}
    return Answer("description.html", values, waveform=True)


def _save(asked: Asked) -> Answer:
    fields = {name: value for name, value in asked.form.items() if name not in {"csrf", "version"}}
    annotating.save(asked.desk, asked.who, asked.path["number"], asked.version, fields)
    return Answer(go_to=f"/task/{asked.path['number']}")


def _draft(asked: Asked) -> Answer:
    """Keep the draft that the script of the page sends by itself."""
    number = asked.path["number"]
    views.task_view(asked.desk, asked.who, number)  # whose it is, before what was sent
    given = asked.json if isinstance(asked.json, dict) else {}
    fields, version = given.get("fields"), given.get("version")
    if not isinstance(fields, dict) or not all(isinstance(value, str) for value in fields.values()):
        raise InvalidInputError("expected the fields of a draft, as texts")
    if type(version) is not int:
        raise InvalidInputError("expected the version of the task that the page shows")
    kept = {str(name): value for name, value in fields.items() if name not in {"csrf", "version"}}
    return Answer(values={"version": annotating.save(asked.desk, asked.who, number, version, kept)})


def _submit(asked: Asked) -> Answer:
    number = asked.path["number"]
    kind = views.task_view(asked.desk, asked.who, number).task.kind
    given: Structure | Description
    given = structure_of(asked.form) if kind == "structure" else description_of(asked.form, kind)
    annotating.submit(asked.desk, asked.who, number, asked.version, given)
    return Answer(go_to="/work")


def _skip(asked: Asked) -> Answer:
    reason, note = asked.form.get("reason", ""), asked.form.get("note", "")
    annotating.screen(asked.desk, asked.who, asked.path["number"], asked.version, reason=reason, note=note)
    return Answer(go_to="/work")


def _restart(asked: Asked) -> Answer:
    annotating.restart_listening(asked.desk, asked.who, asked.path["number"], asked.version)
    return Answer(go_to=f"/task/{asked.path['number']}")


def _events(asked: Asked) -> Answer:
    reports = asked.json.get("events", []) if isinstance(asked.json, dict) else []
    if not isinstance(reports, list) or not all(isinstance(report, dict) for report in reports):
        raise InvalidInputError("expected a list of events")
    number = asked.path["number"]
    found = annotating.record(asked.desk, asked.who, number, reports)
    duration = views.task_view(asked.desk, asked.who, number).song.duration_sec
    return Answer(values={**found._asdict(), "writes": found.may_write(duration)})


def _recording(asked: Asked) -> Path:
    """Return the recording of a task's song."""
    name = views.task_view(asked.desk, asked.who, asked.path["number"]).song.audio
    path = (asked.audio / name).resolve()
    if not name or not path.is_relative_to(asked.audio.resolve()) or not path.is_file():
        raise ForbiddenError("this song has no recording")
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
    rows = structure.differences(first, second)
    return Answer("settle.html", {"seen": seen, "rows": rows, "labels": _LABELS, "fields": structure_fields(base)})


def _settle(asked: Asked) -> Answer:
    inspecting.settle(asked.desk, asked.who, asked.path["song"], asked.version, structure_of(asked.form))
    return Answer(go_to="/inspect")


def _score_page(asked: Asked) -> Answer:
    seen = views.task_view(asked.desk, asked.who, asked.path["number"])
    if seen.result is None or seen.task.kind not in assurance.FORMS:
        raise InvalidInputError("only descriptions that were handed in are scored")
    values = {
        "action": asked.address,
        "form": assurance.FORMS[seen.task.kind],
        "parts": assurance.PARTS,
        "dimensions": DIMENSIONS[seen.task.kind],
    }
    return Answer("score.html", {"seen": seen, "fields": {}, **values}, waveform=True)


def _score(asked: Asked) -> Answer:
    inspecting.score(asked.desk, _sheet(asked), asked.version)
    return Answer(go_to="/inspect")


# administrators


def _manage(asked: Asked) -> Answer:
    ready = views.decisions(asked.desk, asked.who)
    return Answer("manage.html", {"ready": ready, "roles": ROLES, "invitation": "", "fields": {}, **_numbers(asked)})


def _numbers(asked: Asked) -> dict[str, Any]:
    return {"progress": managing.progress(asked.desk, asked.who), "states": machine.states(machine.SONG)}


def _progress(asked: Asked) -> Answer:
    return Answer("progress.html", _numbers(asked))


def _invite(asked: Asked) -> Answer:
    token = accounts.invite(asked.desk, asked.who, asked.form.get("role", ""))
    page = _manage(asked)
    return page._replace(values={**(page.values or {}), "invitation": f"/invitation/{token}"})


def _screening(asked: Asked) -> Answer:
    keep = asked.form.get("decision") == "keep"
    managing.decide_screening(asked.desk, asked.who, asked.path["song"], asked.version, keep=keep)
    return Answer(go_to="/manage")


def _decide(asked: Asked) -> Answer:
    returned = [group for group in DIMENSIONS if asked.form.get("decision") == f"return_{group}"]
    if not returned and asked.form.get("decision") != "finish":
        raise InvalidInputError("a song is let in, or one of its descriptions is returned")
    managing.decide(asked.desk, asked.who, asked.path["song"], asked.version, returned=returned)
    return Answer(go_to="/manage")


def _week(asked: Asked) -> Answer:
    try:
        monday = dt.date.fromisoformat(asked.form.get("monday", ""))
    except ValueError as error:
        raise InvalidInputError("a date is year-month-day") from error
    managing.close_week(asked.desk, asked.who, monday)
    return Answer(go_to="/manage")


def _enter(asked: Asked) -> Answer:
    form = asked.form
    try:
        person, cents = int(form.get("person", "")), int(form.get("cents", ""))
    except ValueError as error:
        raise InvalidInputError("person and cents are whole numbers") from error
    entry = ledger.Entry(person, form.get("kind", ""), cents, form.get("reason", ""))
    managing.enter(asked.desk, asked.who, entry)
    return Answer(go_to="/ledger")


def _analytics(asked: Asked) -> Answer:
    return Answer("analytics.html", {"habits": watching.habits(asked.desk, asked.who)})


def _submissions(asked: Asked) -> Answer:
    return Answer("person.html", {"tasks": watching.submissions(asked.desk, asked.who, asked.path["person"])})


def _verifications(asked: Asked) -> Answer:
    return Answer("verify.html", {"sampled": watching.verifications(asked.desk, asked.who)})


def _sheet(asked: Asked) -> ScoreSheet:
    """Read the scoring form of a description."""
    group = views.task_view(asked.desk, asked.who, asked.path["number"]).task.kind
    if group not in assurance.FORMS:
        raise InvalidInputError("only descriptions are scored")
    return sheet_of(asked.form, group, asked.path["number"], asked.who)


def _agreement(asked: Asked) -> Answer:
    found = comparing.study_agreement(asked.desk, asked.who)
    return Answer("agreement.html", agreement_values(found, asked.language))


def _verify(asked: Asked) -> Answer:
    watching.verify(asked.desk, _sheet(asked))
    return Answer(go_to="/manage/verify")


# training


def _training(asked: Asked) -> Answer:
    found = practising.practice(asked.desk, asked.who)
    return Answer("training.html", {"practice": found, "most": MAX_SPREAD, "fields": {}})


def _practise(asked: Asked) -> Answer:
    task = practising.take_training(asked.desk, asked.who)
    if task is None:
        return Answer(go_to="/training")
    annotating.open_task(asked.desk, asked.who, task.id)
    return Answer(go_to=f"/task/{task.id}")


def _choose_training(asked: Asked) -> Answer:
    number = asked.form.get("songs", "")
    practising.choose_songs(asked.desk, asked.who, int(number) if number.isdecimal() else 0)
    return Answer(go_to="/training")


def _new_round(asked: Asked) -> Answer:
    practising.new_round(asked.desk, asked.who)
    return Answer(go_to="/training")


def _score_training(asked: Asked) -> Answer:
    practising.score_item(asked.desk, _sheet(asked))
    return Answer(go_to="/training")


PAGES: Final = (
    Page("GET", "/", "ask", _home),
    Page("GET", "/sign-in", "public", _sign_in),
    Page("POST", "/sign-in", "public", _kept(_sign_in, _do_sign_in)),
    Page("POST", "/sign-out", "ask", _do_sign_out),
    Page("GET", "/invitation/{token}", "public", _invitation),
    Page("POST", "/invitation/{token}", "public", _kept(_invitation, _accept)),
    Page("GET", "/feedback", "ask", _feedback),
    Page("POST", "/feedback", "ask", _kept(_feedback, _do_feedback)),
    Page("GET", "/ledger", "ask", _ledger),
    Page("POST", "/withdraw", "ask", _withdraw),
    Page("GET", "/work", "annotate", _work),
    Page("POST", "/work/next", "annotate", _next),
    Page("GET", "/task/{number:int}", "annotate", _task),
    Page("POST", "/task/{number:int}/save", "annotate", _kept(_task, _save)),
    Page("POST", "/task/{number:int}/draft", "annotate", _draft),
    Page("POST", "/task/{number:int}/submit", "annotate", _kept(_task, _submit)),
    Page("POST", "/task/{number:int}/skip", "annotate", _kept(_task, _skip)),
    Page("POST", "/task/{number:int}/restart", "annotate", _kept(_task, _restart)),
    Page("POST", "/task/{number:int}/events", "annotate", _events),
    Page("GET", "/task/{number:int}/audio", "ask", _audio),
    Page("GET", "/task/{number:int}/waveform", "ask", _waveform),
    Page("GET", "/lexicon/{group}/{dimension}", "annotate", _lexicon),
    Page("GET", "/inspect", "inspect", _inspect),
    Page("GET", "/inspect/song/{song}", "inspect", _song),
    Page("POST", "/inspect/song/{song}", "inspect", _kept(_song, _settle)),
    Page("GET", "/inspect/task/{number:int}", "inspect", _score_page),
    Page("POST", "/inspect/task/{number:int}", "inspect", _kept(_score_page, _score)),
    Page("GET", "/manage", "manage", _manage),
    Page("GET", "/manage/progress", "manage", _progress),
    Page("POST", "/manage/invite", "manage", _kept(_manage, _invite)),
    Page("POST", "/manage/screening/{song}", "manage", _kept(_manage, _screening)),
    Page("POST", "/manage/song/{song}", "manage", _kept(_manage, _decide)),
    Page("POST", "/manage/week", "manage", _kept(_manage, _week)),
    Page("POST", "/ledger", "manage", _kept(_ledger, _enter)),
    Page("GET", "/ledger.csv", "ask", _ledger_csv),
    Page("GET", "/manage/analytics", "manage", _analytics),
    Page("GET", "/manage/person/{person:int}", "manage", _submissions),
    Page("GET", "/manage/agreement", "manage", _agreement),
    Page("GET", "/manage/verify", "manage", _verifications),
    Page("GET", "/manage/verify/{number:int}", "manage", _score_page),
    Page("POST", "/manage/verify/{number:int}", "manage", _kept(_score_page, _verify)),
    Page("GET", "/training", "ask", _training),
    Page("POST", "/training/next", "annotate", _practise),
    Page("POST", "/training/songs", "manage", _kept(_training, _choose_training)),
    Page("POST", "/training/round", "manage", _kept(_training, _new_round)),
    Page("GET", "/training/task/{number:int}", "inspect", _score_page),
    Page("POST", "/training/task/{number:int}", "inspect", _kept(_score_page, _score_training)),
)
"""Every page there is."""
