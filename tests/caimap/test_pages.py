"""What pages show of one's own work and of others', and that no click and no refusal loses what was written."""

from __future__ import annotations

import re
from html import unescape

import pytest
from tests.caimap.test_web import Browser
from tests.caimap_bench import StudyBench, description, one_verse

from music_evals.caimap.domain.values import Effects, Section, Structure
from music_evals.caimap.services import accounts, annotating, managing
from music_evals.caimap.storage.tables import PersonRow, SessionRow, SongRow, TaskRow
from music_evals.caimap.web.app import build_app
from music_evals.caimap.web.forms import Row, labels_for, split_rows, structure_fields, structure_of, tidied

pytest.importorskip("starlette.testclient")
PASSWORD = "a long password"  # noqa: S105  (of nobody)


@pytest.fixture
def app(bench: StudyBench, tmp_path):
    (tmp_path / "audio").mkdir()
    return build_app(bench.service, tmp_path / "audio")


@pytest.fixture
def visitor(app, bench: StudyBench):
    return lambda who: Browser(app, bench, who)


def structured(bench: StudyBench, *labels: str) -> list[int]:
    """Hand in the structures of a song, the second two days after the first; return their tasks."""
    bench.songs("s1")
    numbers = []
    for who, label in zip((bench.PRO, bench.OTHER_PRO), labels, strict=True):
        task = bench.take(who)
        annotating.submit(
            bench.service, who, task.id, bench.version(TaskRow, task.id), one_verse("春眠不觉晓", label=label)
        )
        bench.clock.wait(days=2)
        numbers.append(task.id)
    return numbers


def described(bench: StudyBench, effects: Effects | None = None) -> int:
    """Hand in the description of an amateur; return its task."""
    structured(bench, "verse1", "verse1")
    task = bench.take(bench.FAN)
    bench.listen(bench.FAN, task.id)
    given = description("amateur")
    if effects is not None:
        object.__setattr__(given, "effects", effects)
    annotating.submit(bench.service, bench.FAN, task.id, bench.version(TaskRow, task.id), given)
    return task.id


# the editor


def test_a_split_line_keeps_its_label_at_the_first_and_its_mark_at_the_last_half() -> None:
    fields = {"label_0": "verse1", "line_0": "春眠/不觉晓", "rhyme_0": "on", "theme": "春"}
    assert structure_of(fields).sections[0].rhyme == ("cc", "ccR")
    assert split_rows([Row("verse1", "春/眠/晓", rhymes=True)]) == [
        Row("verse1", "春", rhymes=False), Row("", "眠", rhymes=False), Row("", "晓", rhymes=True)
    ]  # fmt: skip


def test_saving_makes_rows_of_halves_so_that_each_has_its_own_label_and_mark(bench: StudyBench, visitor) -> None:
    bench.songs("s1")
    task = bench.take(bench.PRO)
    browser, path = visitor(bench.PRO), f"/task/{task.id}"
    fields = {"label_0": "verse1", "line_0": "春眠/不觉晓", "rhyme_0": "on", "line_1": "", "theme": "春"}
    saved = browser.post(f"{path}/save", version=str(bench.version(TaskRow, task.id)), **fields)
    assert saved.status_code == 303
    page = browser.get(path).text
    assert 'name="line_1" value="不觉晓"' in page
    assert 'name="line_2"' not in page  # the emptied line is gone
    fields = {"label_0": "verse1", "line_0": "春眠", "rhyme_0": "on", "label_1": "chorus1", "line_1": "不觉晓"}
    version = str(bench.version(TaskRow, task.id))
    assert browser.post(f"{path}/submit", version=version, theme="春", **fields).status_code == 303
    with bench.store.reading() as session:
        kept = Structure.from_dict(session.get(TaskRow, task.id).result)
    assert kept.sections == (Section("verse1", ("春眠",), ("cR",)), Section("chorus1", ("不觉晓",), ("ccc",)))


def test_a_draft_that_saved_itself_is_shown_with_a_row_a_line(bench: StudyBench, visitor) -> None:
    bench.songs("s1")
    task = bench.take(bench.PRO)
    browser = visitor(bench.PRO)
    fields = {"label_0": "verse1", "line_0": "春眠/不觉晓", "theme": "春"}
    body = {"version": bench.version(TaskRow, task.id), "fields": fields}
    answer = browser.client.post(f"/task/{task.id}/draft", json=body, headers={"x-csrf": browser.csrf})
    assert answer.status_code == 200
    assert 'name="line_1" value="不觉晓"' in browser.get(f"/task/{task.id}").text


def test_a_section_without_words_is_put_in_without_giving_up_a_row(bench: StudyBench, visitor) -> None:
    fields = structure_fields(one_verse("春眠", "晓"))
    more = tidied({**fields, "insert_0": "on", "insert_1": "on"})
    assert [more[f"line_{number}"] for number in range(4)] == ["", "春眠", "", "晓"]
    assert more["rhyme_1"] == more["rhyme_3"] == "on"
    made = structure_of({**more, "label_0": "intro1", "label_2": "interlude1", "label_3": "verse2"})
    assert [(section.label, section.lines) for section in made.sections] == [
        ("intro1", ()), ("verse1", ("春眠",)), ("interlude1", ()), ("verse2", ("晓",))
    ]  # fmt: skip
    assert structure_of(structure_fields(made)) == made
    structured(bench, "verse1", "bridge1")
    inspector = visitor(bench.INSPECTOR)
    fields = {**structure_fields(one_verse("春眠不觉晓", theme="我的主题")), "insert_0": "on"}
    shown = inspector.post("/inspect/song/s1/rows", version=str(bench.version(SongRow, "s1")), **fields)
    assert shown.status_code == 200
    assert 'name="line_1" value="春眠不觉晓"' in shown.text
    assert "我的主题" in shown.text
    assert bench.version(SongRow, "s1") == int(re.search(r'name="version" value="(\d+)"', shown.text)[1])


def test_a_corrected_reading_goes_through_the_editor(bench: StudyBench, visitor) -> None:
    fields = {"label_0": "verse1", "line_0": "他去/银行", "reading_0": " HANG4 ", "line_1": "女", "reading_1": "NV3"}
    assert tidied({**fields, "theme": "春"})["reading_1"] == "hang4"  # of the end of the line
    made = structure_of({**fields, "theme": "春"})
    assert made.sections[0].readings == ("", "hang4", "")  # 女 is read so anyway
    assert structure_of(structure_fields(made)) == made
    bench.songs("s1")
    task = bench.take(bench.PRO)
    browser, path = visitor(bench.PRO), f"/task/{task.id}"
    page = browser.get(path).text
    assert re.findall(r'name="reading_\d" value="" placeholder="(\w+)"', page) == ["xiao3", "niao3"]
    given = {
        "label_0": "verse1",
        "line_0": "春眠不觉晓",
        "theme": "春",
        "version": str(bench.version(TaskRow, task.id)),
    }
    refused = browser.post(f"{path}/submit", reading_0="xiao", **given)
    assert refused.status_code == 400
    assert "xiao" in unescape(refused.text)
    assert browser.post(f"{path}/submit", reading_0="xiao4", **given).status_code == 303
    assert "xiao4" in browser.get(path).text
    assert "xiao4" in visitor(bench.ADMIN).get(f"/manage/task/{task.id}").text


def test_labels_go_on_after_the_sixth() -> None:
    assert "verse6" in labels_for({})
    assert "verse7" not in labels_for({})
    offered = labels_for({"line_0": "春", "label_0": "verse9", "line_1": "", "label_1": "pre-chorus12"})
    assert {"verse10", "pre-chorus13", "chorus6"} <= set(offered)
    assert {"verse11", "chorus7"}.isdisjoint(offered)
    assert "ending99" in labels_for({"line_0": "", "label_0": "ending99"})


# what was handed in


def test_what_was_handed_in_is_read_and_not_edited(bench: StudyBench, visitor) -> None:
    number = described(bench)
    page = visitor(bench.FAN).get(f"/task/{number}").text
    assert description("amateur").overall_text in page
    assert "词0、词1、词2" in page
    assert "已通过" in page  # accepted
    assert f'action="/task/{number}' not in page
    page = visitor(bench.PRO).get("/task/1").text
    assert "春眠不觉晓" in page
    assert "ccccR" in page
    assert 'action="/task/1' not in page


def test_administrators_read_every_submission(bench: StudyBench, visitor) -> None:
    structure, _ = structured(bench, "verse1", "bridge1")
    manager = visitor(bench.ADMIN)
    assert f'href="/manage/task/{structure}"' in manager.get(f"/manage/person/{bench.PRO}").text
    page = manager.get(f"/manage/task/{structure}").text
    assert "春眠不觉晓" in page
    assert "ccccR" in page
    assert visitor(bench.OTHER_PRO).get(f"/manage/task/{structure}").status_code == 403


def test_inspectors_see_the_effects_that_they_score_and_hear_the_song_that_they_settle(
    bench: StudyBench, visitor
) -> None:
    number = described(bench, Effects(clear=False, live=True, live_text="观众掌声", lo_fi=False))
    page = visitor(bench.INSPECTOR).get(f"/inspect/task/{number}").text
    for said in ("音质不清晰", "现场版", "观众掌声"):
        assert said in page
    assert "Lo-Fi" not in page


def test_the_page_on_which_a_song_is_settled_plays_it(bench: StudyBench, visitor) -> None:
    first, _ = structured(bench, "verse1", "bridge1")
    inspector = visitor(bench.INSPECTOR)
    assert "<audio" not in inspector.get("/inspect/song/s1").text  # there is no recording
    with bench.store.writing() as session:
        row = session.get(SongRow, "s1")
        row.content = {**row.content, "audio": "s1.flac"}
    assert f'src="/task/{first}/audio"' in inspector.get("/inspect/song/s1").text


# no click loses work


@pytest.mark.usefixtures("patient")
def test_withdrawal_has_a_page_of_its_own_and_asks_for_the_password(bench: StudyBench, visitor) -> None:
    token = accounts.invite(bench.service, bench.ADMIN, "amateur")
    who = accounts.accept(bench.service, token, "林", PASSWORD, consents=True)
    browser = visitor(who)
    assert 'action="/withdraw"' not in browser.get("/work").text
    assert 'type="password"' in browser.get("/withdraw").text
    for given in ("", "another password"):
        refused = browser.post("/withdraw", password=given)
        assert refused.status_code == 401
        assert "密码不符" in refused.text
    with bench.store.reading() as session:
        assert session.get(PersonRow, who).withdrawn is False
    assert browser.post("/withdraw", password=PASSWORD).headers["location"] == "/sign-in"
    with bench.store.reading() as session:
        assert session.get(PersonRow, who).withdrawn is True


def test_guesses_of_a_stolen_session_wait_longer_and_longer(
    bench: StudyBench, visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = [1000.0]
    monkeypatch.setattr("music_evals.caimap.web.guards.monotonic", lambda: moment[0])
    token = accounts.invite(bench.service, bench.ADMIN, "amateur")
    who = accounts.accept(bench.service, token, "林", PASSWORD, consents=True)
    browser = visitor(who)
    found = [browser.post("/withdraw", password=PASSWORD[::-1]).status_code for _ in range(4)]
    assert found == [401, 401, 429, 429]
    assert browser.post("/withdraw", password=PASSWORD).status_code == 429
    moment[0] += 1.5
    assert browser.post("/withdraw", password=PASSWORD).status_code == 303


def test_who_has_no_password_confirms_by_the_name_of_the_account(bench: StudyBench, visitor) -> None:
    browser, other, own = visitor(bench.OTHER_FAN), "somebody", "amateur8"
    assert 'type="password"' not in browser.get("/withdraw").text
    assert browser.post("/withdraw", password=other).status_code == 401
    assert browser.post("/withdraw", password=own).status_code == 303


def test_listening_again_asks_first_and_keeps_what_was_written(bench: StudyBench, visitor) -> None:
    structured(bench, "verse1", "verse1")
    task = bench.take(bench.FAN)
    bench.listen(bench.FAN, task.id)
    browser, path = visitor(bench.FAN), f"/task/{task.id}"
    asking = browser.post(f"{path}/restart", version=str(bench.version(TaskRow, task.id)), overall_text="写了一半")
    assert asking.status_code == 200
    with bench.store.reading() as session:
        row = session.get(TaskRow, task.id)
        assert (row.attempt, row.draft) == (1, {"overall_text": "写了一半"})
    version = re.search(r'name="version" value="(\d+)"', asking.text)[1]
    assert browser.post(f"{path}/restart", version=version, sure="yes").headers["location"] == path
    with bench.store.reading() as session:
        row = session.get(TaskRow, task.id)
        assert (row.attempt, row.draft) == (2, {"overall_text": "写了一半"})
    page = browser.get(path).text
    assert "写了一半" in page
    assert 'data-writes="no"' in page
    # in the second attempt, too, nothing more is written in the first 30 seconds
    early = browser.post(f"{path}/save", version=str(bench.version(TaskRow, task.id)), overall_text="再写")
    assert early.status_code == 400
    assert "再写" in early.text


# no refusal loses what was written


def test_a_refused_skip_keeps_the_lyrics_and_what_was_said(bench: StudyBench, visitor) -> None:
    bench.songs("s1")
    task = bench.take(bench.PRO)
    browser, path = visitor(bench.PRO), f"/task/{task.id}"
    before = browser.get(path).text
    version = str(bench.version(TaskRow, task.id))
    refused = browser.post(f"{path}/skip", version=version, reason="other", note="")
    assert refused.status_code == 400
    assert re.findall(r'name="line_\d+"[^>]*', refused.text) == re.findall(r'name="line_\d+"[^>]*', before) != []
    assert '<option value="other" selected>' in refused.text
    stale = browser.post(f"{path}/skip", version="999", reason="other", note="太吵")
    assert stale.status_code == 409
    assert 'value="太吵"' in stale.text


def test_a_draft_without_lines_hides_no_lyrics(bench: StudyBench, visitor) -> None:
    bench.songs("s1")
    task = bench.take(bench.PRO)
    annotating.save(bench.service, bench.PRO, task.id, bench.version(TaskRow, task.id), {"theme": "春"})
    assert 'name="line_0"' in visitor(bench.PRO).get(f"/task/{task.id}").text


def test_listening_again_before_one_may_write_asks_and_saves_nothing(bench: StudyBench, visitor) -> None:
    structured(bench, "verse1", "verse1")
    task = bench.take(bench.FAN)
    version = str(bench.version(TaskRow, task.id))
    asking = visitor(bench.FAN).post(f"/task/{task.id}/restart", version=version, live="on")
    assert asking.status_code == 200
    with bench.store.reading() as session:
        assert session.get(TaskRow, task.id).draft == {}


def test_a_refused_entry_of_the_ledger_keeps_its_kind(bench: StudyBench, visitor) -> None:
    sent = {"person": "99", "kind": "reward", "cents": "500", "reason": "for care"}
    refused = visitor(bench.ADMIN).post("/ledger", **sent)
    assert refused.status_code >= 400
    assert '<option value="reward" selected>' in refused.text


def test_who_breaks_a_rule_of_listening_is_told_at_once(bench: StudyBench, visitor) -> None:
    structured(bench, "verse1", "verse1")
    task = bench.take(bench.FAN)
    browser = visitor(bench.FAN)
    told = [
        browser.send(f"/task/{task.id}/events", {"events": [{"kind": kind, "position_sec": 0}]}).json()["told"]
        for kind in ("play", "paste")
    ]
    assert told[0] == ""
    assert "重新听" in told[1]


# a part of a page that asks


def test_what_scripts_put_into_a_page(bench: StudyBench, visitor) -> None:
    browser = visitor(bench.ADMIN)
    assert "<html" not in browser.get("/manage/progress").text
    blank = browser.post("/feedback", content="  ", here="yes", place="/manage")
    assert blank.status_code == 400
    assert re.search(r'<main id="main">.*<p class="message" role="alert">[^<]+</p>', blank.text, re.DOTALL)
    sent = browser.post("/feedback", content="你好", here="yes", place="/manage")
    assert re.fullmatch(r'<p role="status">[^<]+</p>', sent.text.strip())
    with bench.store.writing() as session:
        for row in session.query(SessionRow):
            session.delete(row)
    out = browser.get("/manage/progress")
    assert (out.status_code, out.headers["location"]) == (303, "/sign-in")


def test_a_settlement_is_shown_where_its_song_is_gone(bench: StudyBench, visitor) -> None:
    structured(bench, "verse1", "bridge1")
    inspector, seen = visitor(bench.INSPECTOR), str(bench.version(SongRow, "s1"))
    managing.withdraw(bench.service, bench.ADMIN, bench.PRO)
    fields = structure_fields(one_verse("春眠不觉晓", theme="质检员的主题"))
    late = inspector.post("/inspect/song/s1", version=seen, **fields)
    assert late.status_code in {403, 409}
    for written in ("春眠不觉晓", "质检员的主题"):
        assert written in late.text


def test_a_form_that_is_out_of_date_is_shown_to_be_copied(bench: StudyBench, visitor) -> None:
    bench.songs("s1")
    task = bench.take(bench.PRO)
    browser = visitor(bench.PRO)
    data = {"csrf": "of an older session", "line_0": "春眠", "label_0": "verse1", "theme": "</textarea>主题"}
    answer = browser.client.post(f"/task/{task.id}/submit", data=data)
    assert answer.status_code == 403
    assert "verse1\t春眠" in unescape(answer.text)
    assert "&lt;/textarea&gt;主题" in answer.text


def test_who_was_signed_out_in_between_gets_back_what_was_sent(bench: StudyBench, visitor) -> None:
    bench.songs("s1")
    task = bench.take(bench.PRO)
    browser = visitor(bench.PRO)
    with bench.store.writing() as session:
        session.query(SessionRow).delete()
    answer = browser.post(f"/task/{task.id}/save", line_0="春眠", theme="一段主题")
    assert answer.status_code == 401
    assert "一段主题" in answer.text
    assert "/sign-in" in answer.text
    assert browser.post(f"/task/{task.id}/save").headers["location"] == "/sign-in"  # nothing was written


def test_a_description_that_cannot_be_handed_in_any_more_is_shown(bench: StudyBench, visitor) -> None:
    number = described(bench)
    fields = {"overall_text": "第二个窗口里的文字", "tags_instrumentation": "钢琴"}
    late = visitor(bench.FAN).post(f"/task/{number}/submit", version="1", clear="yes", **fields)
    assert late.status_code in {400, 409}
    for written in fields.values():
        assert written in late.text


def test_passwords_are_never_shown_again(bench: StudyBench, visitor) -> None:
    stranger = visitor(0).client
    for path in ("/sign-in", "/withdraw", "/invitation/x"):
        answer = stranger.post(path, data={"name": "林", "password": "typed in secret"})
        assert "typed in secret" not in answer.text
