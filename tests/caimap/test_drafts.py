"""Drafts on two pages: neither is lost, and none is kept over the other unless somebody chose it."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from tests.caimap.test_pages import app, visitor  # noqa: F401  (fixtures)
from tests.caimap_bench import StudyBench, one_verse

from music_evals.caimap.domain.values import Structure
from music_evals.caimap.services import accounts, inspecting, training
from music_evals.caimap.storage.tables import SessionRow, SongRow, TaskRow
from music_evals.caimap.web.forms import merged, parts, structure_fields, structure_of, written
from music_evals.caimap.web.visitors import COOKIE
from music_evals.errors import InvalidInputError

pytest.importorskip("starlette.testclient")


class Forms(HTMLParser):
    """The forms of a page: action -> fields, as a browser would send them before anybody chooses."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: dict[str, dict[str, str]] = {}
        self.choices: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form":
            self.fields = self.found.setdefault(given["action"] or "", {})
        elif tag == "input" and given.get("type") == "radio":
            self.choices.add(given["name"] or "")
        elif tag == "input" and given.get("type") == "hidden":
            self.fields[given["name"] or ""] = given["value"] or ""


def lines(*texts: str, theme: str = "春天") -> dict[str, str]:
    return structure_fields(one_verse(*texts, theme=theme))


def begun(bench: StudyBench) -> tuple[int, str]:
    """Return a structure that is being worked on, and the version that both pages show."""
    bench.songs("s1")
    number = bench.take(bench.PRO).id
    return number, str(bench.version(TaskRow, number))


def kept_draft(bench: StudyBench, number: int) -> dict[str, str]:
    with bench.store.reading() as session:
        return dict(session.get(TaskRow, number).draft)


def differing(kept: dict[str, str], page: dict[str, str]) -> list[Any]:
    return [part for part in parts(kept, page) if part[1] != part[2]]


# --- where drafts differ, and what is made of two


def test_rows_of_different_number_are_laid_beside_each_other() -> None:
    kept = lines("春眠不觉晓", "处处闻啼鸟", "夜来风雨声")
    page = lines("春眠不觉晓", "花落知多少", "处处闻啼鸟", "夜来风雨声", theme="夏天")
    (rows, ours, theirs), (theme, *_) = differing(kept, page)
    assert (len(ours), len(theirs), theme) == (0, 1, "theme")
    assert merged(kept, page, {"take": "kept"}) == kept
    assert merged(kept, page, {"take": "page"}) == page
    both = merged(kept, page, {f"take_{rows}": "page", f"take_{theme}": "kept"})
    assert both == {**page, "theme": "春天"}
    with pytest.raises(InvalidInputError):
        merged(kept, page, {f"take_{rows}": "page"})
    assert differing(kept, kept) == []


def test_ticks_and_empty_fields_are_no_less_than_texts() -> None:
    kept = {"overall_text": "一", "live": "on", "tags_mood": ""}
    page = {"overall_text": "一", "clear": "yes", "text_mood": ""}
    assert {key for key, _, _ in differing(kept, page)} == {"live", "clear"}
    assert merged(kept, page, {"take_live": "page", "take_clear": "kept"}) == {"overall_text": "一"}
    assert merged(kept, page, {"take": "kept"}) == {"overall_text": "一", "live": "on"}


def test_what_is_kept_of_a_form_is_what_was_written() -> None:
    form = {"csrf": "x", "version": "2", "take_theme": "kept", "take": "page", "theme": "春", "line_0": "春眠/不觉晓"}
    found = {name: value for name, value in written(form).items() if value}
    assert found == {"theme": "春", "line_0": "春眠", "line_1": "不觉晓"}


# --- two pages of one task


@pytest.mark.parametrize("act", ["save", "submit"])
def test_a_refused_draft_is_laid_beside_the_kept_one(bench: StudyBench, visitor, act: str) -> None:  # noqa: F811
    number, seen = begun(bench)
    browser, task = visitor(bench.PRO), f"/task/{number}"
    first = lines("春眠不觉晓", "处处闻啼鸟", theme="第一页")
    second = lines("春眠不觉晓", "夜来风雨声", "处处闻啼鸟", theme="第二页")
    assert browser.post(f"{task}/save", version=seen, **first).status_code == 303
    refused = browser.post(f"{task}/{act}", version=seen, **second)
    assert refused.status_code == 409
    assert 'class="player' not in refused.text  # whose script saves by itself
    assert all(text in refused.text for text in ("第一页", "第二页", "夜来风雨声"))
    forms = Forms(refused.text)
    fields = forms.found[f"{task}/save"]
    assert (fields["version"], len(forms.choices)) == (str(int(seen) + 1), 2)
    assert kept_draft(bench, number) == first
    open_part = browser.post(f"{task}/save", **fields, take_theme="kept")  # the lines are not chosen
    assert (open_part.status_code, Forms(open_part.text).choices) == (400, forms.choices)
    assert kept_draft(bench, number) == first
    rows = (forms.choices - {"take_theme"}).pop()
    chosen = browser.post(f"{task}/save", **fields, take_theme="kept", **{rows: "page"})
    assert chosen.headers["location"] == task
    assert kept_draft(bench, number) == {**second, "theme": "第一页"}


def test_a_choice_that_comes_too_late_is_asked_again(bench: StudyBench, visitor) -> None:  # noqa: F811
    number, seen = begun(bench)
    browser, task = visitor(bench.PRO), f"/task/{number}"
    browser.post(f"{task}/save", version=seen, **lines("春眠不觉晓", theme="一"))
    refused = browser.post(f"{task}/save", version=seen, **lines("春眠不觉晓", theme="二"))
    fields = Forms(refused.text).found[f"{task}/save"]
    browser.post(f"{task}/save", version=fields["version"], **lines("春眠不觉晓", theme="三"))
    again = browser.post(f"{task}/save", **fields, take="page")
    assert again.status_code == 409
    assert kept_draft(bench, number)["theme"] == "三"
    fields = Forms(again.text).found[f"{task}/save"]
    assert browser.post(f"{task}/save", **fields, take="page").status_code == 303
    assert kept_draft(bench, number)["theme"] == "二"


def test_a_page_that_is_refused_for_another_reason_takes_no_newer_version(bench: StudyBench, visitor) -> None:  # noqa: F811
    number, seen = begun(bench)
    browser, task = visitor(bench.PRO), f"/task/{number}"
    kept = lines("春眠不觉晓", theme="一")
    browser.post(f"{task}/save", version=seen, **kept)
    wrong = {**lines("春眠不觉晓", theme="二"), "label_0": ""}  # no section begins: refused before versions are seen
    refused = browser.post(f"{task}/submit", version=seen, **wrong)
    assert (refused.status_code, 'class="player' in refused.text) == (409, False)
    fresh = browser.post(f"{task}/submit", version=str(int(seen) + 1), **wrong)
    assert (fresh.status_code, 'class="player' in fresh.text, "二" in fresh.text) == (400, True, True)
    assert kept_draft(bench, number) == kept


def test_what_carries_no_draft_shows_the_kept_one(bench: StudyBench, visitor) -> None:  # noqa: F811
    number, seen = begun(bench)
    browser, task = visitor(bench.PRO), f"/task/{number}"
    browser.post(f"{task}/save", version=seen, **lines("夜来风雨声", theme="一"))
    for act, fields in (("restart", {"sure": "yes"}), ("skip", {"reason": "other", "note": "杂音"})):
        refused = browser.post(f"{task}/{act}", version=seen, **fields)
        assert (refused.status_code, "夜来风雨声" in refused.text) == (409, True), act


def test_the_script_is_told_and_keeps_nothing(bench: StudyBench, visitor) -> None:  # noqa: F811
    number, seen = begun(bench)
    browser, task = visitor(bench.PRO), f"/task/{number}"
    kept = lines("春眠不觉晓", theme="一")
    browser.post(f"{task}/save", version=seen, **kept)
    answer = browser.send(f"{task}/draft", {"version": int(seen), "fields": {"theme": "二"}})
    assert (answer.status_code, kept_draft(bench, number)) == (409, kept)


def test_a_description_is_merged_by_its_fields(bench: StudyBench, visitor) -> None:  # noqa: F811
    number, _ = begun(bench)
    with bench.store.writing() as session:
        session.get(TaskRow, number).kind = "professional"
        session.get(SongRow, "s1").state = "describing"
    bench.listen(bench.PRO, number)
    seen, browser, task = str(bench.version(TaskRow, number)), visitor(bench.PRO), f"/task/{number}"
    browser.post(f"{task}/save", version=seen, overall_text="一段", tags_instrumentation="钢琴", clear="yes")
    refused = browser.post(
        f"{task}/submit", version=seen, overall_text="另一段", tags_instrumentation="钢琴", live="on"
    )
    forms = Forms(refused.text)
    assert forms.choices == {"take_overall_text", "take_live", "take_clear"}
    taken = {"take_overall_text": "page", "take_live": "kept", "take_clear": "kept"}
    assert browser.post(f"{task}/save", **forms.found[f"{task}/save"], **taken).status_code == 303
    wanted = {"overall_text": "另一段", "tags_instrumentation": "钢琴", "clear": "yes"}
    assert kept_draft(bench, number) == wanted


# --- inspectors


def test_a_model_of_the_training_is_merged_and_arranging_overwrites_nothing(bench: StudyBench, visitor) -> None:  # noqa: F811
    bench.songs("s1")
    training.choose_songs(bench.service, bench.ADMIN, 1)
    first, second, path = visitor(bench.INSPECTOR), visitor(bench.OTHER_INSPECTOR), "/training/song/s1"
    seen = str(bench.version(SongRow, "s1"))
    accepted = lines("春眠不觉晓", theme="甲")
    assert first.post(path, version=seen, **accepted).status_code == 303
    for act in ("", "/rows"):
        refused = second.post(f"{path}{act}", version=seen, **lines("处处闻啼鸟", theme="乙"))
        fields = Forms(refused.text).found[path]
        assert refused.status_code == 409
    assert second.post(path, **fields, take="page").status_code == 303
    (model,) = training.models(bench.service, bench.INSPECTOR)
    assert model.accepted == structure_of(lines("处处闻啼鸟", theme="乙"))


def test_a_settlement_that_came_too_late_stands_beside_the_accepted_one(bench: StudyBench, visitor) -> None:  # noqa: F811
    bench.two_passes("s1", "verse1", "chorus1")
    seen, late = bench.version(SongRow, "s1"), visitor(bench.OTHER_INSPECTOR)
    inspecting.settle(bench.service, bench.INSPECTOR, "s1", seen, one_verse("春眠不觉晓", theme="甲的主题"))
    refused = late.post("/inspect/song/s1", version=str(seen), **lines("处处闻啼鸟", theme="乙的主题"))
    assert refused.status_code == 409
    assert all(text in refused.text for text in ("甲的主题", "乙的主题", "处处闻啼鸟"))
    assert Forms(refused.text).choices == set()  # what was accepted stays
    with bench.store.reading() as session:
        accepted = Structure.from_dict(session.get(SongRow, "s1").accepted["structure"])
    assert accepted.theme == "甲的主题"


# --- the session ended meanwhile


def test_who_was_signed_out_sends_it_again(bench: StudyBench, visitor) -> None:  # noqa: F811
    number, seen = begun(bench)
    browser, task = visitor(bench.PRO), f"/task/{number}"
    typed = lines("春眠不觉晓", "处处闻啼鸟", theme="写了很久")
    with bench.store.writing() as session:
        session.query(SessionRow).delete()
    answer: Any = browser.post(f"{task}/save", version=seen, **typed)
    assert answer.status_code == 401
    fields = Forms(answer.text).found[f"{task}/save"]
    browser.client.cookies.set(COOKIE, accounts.open_session(bench.service, bench.PRO))  # in another tab
    answer = browser.client.post(f"{task}/save", data=fields)
    assert answer.status_code == 403  # with the key of the session that ended
    answer = browser.client.post(f"{task}/save", data=Forms(answer.text).found[f"{task}/save"])
    assert answer.status_code == 303
    assert kept_draft(bench, number) == typed
