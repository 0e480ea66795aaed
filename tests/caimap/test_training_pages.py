"""Pages of the training and of the second verification of structures, and what excluded people are told."""

from __future__ import annotations

import re
from html import unescape

import pytest
from tests.caimap.test_languages import foreign
from tests.caimap.test_oversight import practised, practised_structure, settled, sheet
from tests.caimap.test_pages import app, described, visitor  # noqa: F401  (fixtures)
from tests.caimap_bench import StudyBench, one_verse

from music_evals.caimap.services import accounts, inspecting, managing, training
from music_evals.caimap.services.study import Settings
from music_evals.caimap.storage.tables import PersonRow, SongRow, TaskRow
from music_evals.caimap.web.forms import structure_fields
from music_evals.caimap.web.words import LANGUAGES

pytest.importorskip("starlette.testclient")
BOTH = "春眠不觉晓", "处处闻啼鸟"


def texts(page: str) -> list[str]:
    """Return the texts of the cells of a page's tables."""
    return [
        re.sub(r"\s+", " ", unescape(re.sub("<[^>]+>", "", cell))).strip().replace("\u2013", "-")
        for cell in re.findall("<td.*?</td>", page, re.DOTALL)
    ]


# structures of the training


@pytest.mark.requirement(number=14)
def test_annotators_see_how_their_structures_were_judged(bench: StudyBench, visitor) -> None:  # noqa: F811
    bench.songs("s1")
    training.choose_songs(bench.service, bench.ADMIN, 1)
    number = practised_structure(bench, bench.PRO, one_verse(*BOTH))
    own = visitor(bench.PRO)
    assert texts(own.get("/training").text) == ["s1", "暂无", "-"]
    assert own.get(f"/training/lesson/{number}").status_code == 400  # there is nothing to lay beside it
    practised_structure(bench, bench.OTHER_PRO, one_verse(BOTH[0]))
    page = own.get("/training").text
    assert texts(page) == ["s1", "其他人", "50 %"]
    assert f'href="/training/lesson/{number}"' in page
    lesson = own.get(f"/training/lesson/{number}").text
    assert lesson.count('class="differs') == 4  # the second line is theirs alone: two cells on each side
    assert visitor(bench.OTHER_PRO).get(f"/training/lesson/{number}").status_code == 403
    training.set_model(bench.service, bench.INSPECTOR, "s1", bench.version(SongRow, "s1"), one_verse(*BOTH))
    assert texts(own.get("/training").text) == ["s1", "质检员采用的版本", "100 %"]
    assert 'class="differs' not in own.get(f"/training/lesson/{number}").text
    assert texts(visitor(bench.ADMIN).get("/training").text)[-4:] == [
        "s1",
        str(bench.OTHER_PRO),
        "质检员采用的版本",
        "50 %",
    ]
    managing.withdraw(bench.service, bench.PRO, bench.PRO)
    inspector = visitor(bench.INSPECTOR)
    assert texts(inspector.get("/training").text)[-4:-2] == ["s1", str(bench.OTHER_PRO)]
    assert inspector.get(f"/training/lesson/{number}").status_code == 400


@pytest.mark.requirement(number=14)
def test_inspectors_accept_a_structure_for_each_song_of_the_training(bench: StudyBench, visitor) -> None:  # noqa: F811
    bench.songs("s1", "s2")
    training.choose_songs(bench.service, bench.ADMIN, 1)
    (model,) = training.models(bench.service, bench.INSPECTOR)
    (other,) = {"s1", "s2"} - {model.song.id}
    first, second, path = visitor(bench.INSPECTOR), visitor(bench.OTHER_INSPECTOR), f"/training/song/{model.song.id}"
    assert f'href="{path}"' in first.get("/training").text
    page = first.get(path).text
    assert 'name="line_1" value="处处闻啼鸟"' in page  # it begins as for an annotator
    assert "<audio" not in page
    seen = re.search(r'name="version" value="(\d+)"', page)[1]
    fields = {"version": seen, **structure_fields(one_verse("春眠/不觉晓", theme="春天的早晨"))}
    shown = first.post(f"{path}/rows", **fields).text
    assert 'name="line_1" value="不觉晓"' in shown
    assert "春天的早晨" in shown
    refused = first.post(path, **{**fields, "line_0": "spring"})
    assert (refused.status_code, "只能有汉字" in refused.text, 'value="spring"' in refused.text) == (400, True, True)
    assert first.post(path, **fields).headers["location"] == "/training"
    assert training.models(bench.service, bench.INSPECTOR)[0].accepted.sections[0].lines == ("春眠", "不觉晓")
    assert 'name="line_0" value="春眠"' in second.get(path).text  # what was accepted is where the next one starts
    late = second.post(path, **{**fields, "theme": "晚了一步"})
    assert (late.status_code, "晚了一步" in late.text) == (409, True)
    assert first.get(f"/training/song/{other}").status_code == 400
    manager = visitor(bench.ADMIN)
    assert "已有" in texts(manager.get("/training").text)
    assert f'href="{path}"' not in manager.get("/training").text


@pytest.mark.slow
@pytest.mark.requirement(number=14)
def test_items_that_are_far_apart_are_discussed_on_the_page(bench: StudyBench, visitor) -> None:  # noqa: F811
    item = practised(bench)
    inspector, path = visitor(bench.INSPECTOR), f"/training/item/{item}/discussion"
    training.score_item(bench.service, sheet(item, bench.INSPECTOR, 0.9))
    assert path not in inspector.get("/training").text  # somebody has not scored it
    early = inspector.post(path, content="太早的话")
    assert (early.status_code, "太早的话" in early.text) == (400, True)
    training.score_item(bench.service, sheet(item, bench.OTHER_INSPECTOR, 0.7))
    assert f'action="{path}"' in inspector.get("/training").text
    long = "长" * 2001
    refused = inspector.post(path, content=long)
    assert (refused.status_code, refused.text.count(long)) == (400, 1)
    assert inspector.post(path, content="标签<太>少").headers["location"] == "/training"
    assert visitor(bench.ADMIN).post(path, content="见第二条").status_code == 303
    for reader in (visitor(bench.OTHER_INSPECTOR), visitor(bench.ADMIN)):
        said = [page := reader.get("/training").text, page.index("标签&lt;太&gt;少"), page.index("见第二条")]
        assert said[1] < said[2]
    fan = visitor(bench.FAN)
    assert "标签" not in fan.get("/training").text
    assert fan.post(path, content="我").status_code == 403
    training.new_round(bench.service, bench.ADMIN)
    page = inspector.get("/training").text
    assert "见第二条" in page  # while they score again
    assert f'action="{path}"' not in page


# the second verification


@pytest.mark.requirement(number=13)
def test_a_settled_structure_is_verified_without_seeing_it(bench: StudyBench, visitor) -> None:  # noqa: F811
    bench.service.configure(Settings(seed=1, share=1.0, congruent_share=0.0))
    settled(bench, "s1")  # both lines, of which the passes have the first
    manager, path = visitor(bench.ADMIN), "/manage/settled/s1"
    assert f'href="{path}"' in manager.get("/manage/verify").text
    page = manager.get(path).text
    assert texts(page)[:4] == [
        "不同: ▸ 段落开始: verse1",
        "春眠不觉晓 ccccR",
        "不同: ▸ 段落开始: chorus1",
        "春眠不觉晓 ccccR",
    ]
    assert BOTH[1] not in page
    fields = structure_fields(one_verse(BOTH[0], theme="管理员的主题"))
    refused = manager.post(path, **{**fields, "line_0": "spring"})
    assert (refused.status_code, BOTH[1] in refused.text, "管理员的主题" in refused.text) == (400, False, True)
    assert 'name="line_1"' in manager.post(f"{path}/rows", **{**fields, "line_0": "春眠/不觉晓"}).text
    answer = manager.post(path, **fields)
    assert answer.status_code == 200
    assert texts(answer.text) == [
        "▸ 段落开始: verse1", "春眠不觉晓 ccccR", "▸ 段落开始: verse1", "春眠不觉晓 ccccR",
        "不同: verse1", "不同: 处处闻啼鸟 ccccR", "-", "-",
    ]  # fmt: skip
    (found,) = inspecting.settlements(bench.service, bench.ADMIN)
    assert (found.agreement, found.apart) == (0.5, True)
    assert re.search(r'<td class="n differs">50 %</td>', manager.get("/manage/verify").text)
    assert f'action="{path}"' not in manager.get(path).text
    again = manager.post(path, **{**fields, "theme": "第二次"})
    assert (again.status_code, "第二次" in again.text) == (409, True)
    assert manager.get("/manage/settled/s2").status_code == 400
    managing.withdraw(bench.service, bench.INSPECTOR, bench.INSPECTOR)
    assert manager.get(path).status_code == 400


# where sections begin


def test_the_page_of_a_settlement_marks_where_sections_begin(bench: StudyBench, visitor) -> None:  # noqa: F811
    bench.songs("s1")
    for who, more in ((bench.PRO, {}), (bench.OTHER_PRO, {"label_1": "verse1", "label_2": "ending1", "line_2": ""})):
        task = bench.take(who)
        fields = {**structure_fields(one_verse(*BOTH)), **more, "version": str(bench.version(TaskRow, task.id))}
        assert visitor(who).post(f"/task/{task.id}/submit", **fields).status_code == 303
        bench.clock.wait(days=2)
    cells = texts(visitor(bench.INSPECTOR).get("/inspect/song/s1").text)
    assert cells[4:12] == [
        "不同: verse1", "处处闻啼鸟 ccccR", "不同: ▸ 段落开始: verse1", "处处闻啼鸟 ccccR",  # one verse here, two there
        "-", "-", "不同: ▸ 段落开始: ending1", "不同: 无歌词",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_new_pages_are_in_one_language(bench: StudyBench, visitor, language: str) -> None:  # noqa: F811
    bench.service.configure(Settings(seed=1, share=1.0, congruent_share=0.0))
    settled(bench, "s9")
    item = practised(bench)
    for who, share in ((bench.INSPECTOR, 0.9), (bench.OTHER_INSPECTOR, 0.7)):
        training.score_item(bench.service, sheet(item, who, share))
    training.discuss(bench.service, bench.ADMIN, item, "98 ?")
    (model,) = training.models(bench.service, bench.INSPECTOR)
    number = practised_structure(bench, bench.PRO, one_verse(*BOTH))
    practised_structure(bench, bench.OTHER_PRO, one_verse(*BOTH, label="chorus1"))
    with bench.store.writing() as session:
        session.get(PersonRow, bench.OTHER_FAN).excluded = True
    fields = structure_fields(one_verse(BOTH[0]))
    asked = (
        (bench.PRO, "/training", {}), (bench.PRO, f"/training/lesson/{number}", {}), (bench.OTHER_FAN, "/work", {}),
        (bench.INSPECTOR, "/training", {}), (bench.INSPECTOR, f"/training/song/{model.song.id}", {}),
        (bench.INSPECTOR, "/training/song/s9", {}), (bench.ADMIN, "/training", {}), (bench.ADMIN, "/manage/verify", {}),
        (bench.ADMIN, "/manage/people", {}), (bench.ADMIN, "/manage/settled/s9", {}),
        (bench.ADMIN, "/manage/settled/s9", fields), (bench.ADMIN, "/manage/settled/s9", {}),
    )  # fmt: skip
    for who, path, sent in asked:
        accounts.set_language(bench.service, who, language)
        browser = visitor(who)
        page = browser.post(path, **sent) if sent else browser.get(path)
        assert page.status_code == (400 if path == "/training/song/s9" else 200), path
        assert foreign(page.text, language) == [], path


# who gets no further tasks, what is sampled, and who withdrew


@pytest.mark.requirement(number=12)
def test_excluded_people_are_told_why_and_have_no_button(bench: StudyBench, visitor) -> None:  # noqa: F811
    described(bench)
    with bench.store.writing() as session:
        session.get(PersonRow, bench.FAN).excluded = True
    browser = visitor(bench.FAN)
    for path, button in (("/work", "/work/next"), ("/training", "/training/next")):
        page = browser.get(path)
        assert page.status_code == 200
        assert "你不再得到任务" in page.text
        assert f'action="{button}"' not in page.text
        assert browser.post(button).status_code == 403
        other = visitor(bench.OTHER_FAN).get(path).text
        assert "你不再得到任务" not in other
        assert f'action="{button}"' in other
    assert "10.00" in browser.get("/work").text or "1000" in browser.get("/work").text  # still owed


@pytest.mark.requirement(number=10)
def test_authors_are_not_told_what_is_sampled(bench: StudyBench, visitor) -> None:  # noqa: F811
    bench.service.configure(Settings(seed=1, share=1.0, congruent_share=0.0))
    number = described(bench)
    with bench.store.reading() as session:
        assert session.get(TaskRow, number).state == "sampled"
    for path in ("/work", f"/task/{number}"):
        page = visitor(bench.FAN).get(path).text
        assert "已提交" in page
        assert "等待评分" not in page
    assert "等待评分" in visitor(bench.ADMIN).get(f"/manage/task/{number}").text


@pytest.mark.slow
def test_pages_that_are_read_cope_with_what_was_erased(bench: StudyBench, visitor) -> None:  # noqa: F811
    number = described(bench)
    for who in (bench.FAN, bench.PRO):
        managing.withdraw(bench.service, who, who)
    manager, inspector = visitor(bench.ADMIN), visitor(bench.INSPECTOR)
    for task in (1, number):
        page = manager.get(f"/manage/task/{task}")
        assert (page.status_code, "没有提交内容" in page.text) == (200, True)
        for reader, path in ((manager, "/manage/verify"), (inspector, "/inspect/task"), (inspector, "/training/task"),
                             (inspector, "/training/lesson")):  # fmt: skip
            assert reader.get(f"{path}/{task}").status_code == 400
    page = manager.get(f"/manage/person/{bench.FAN}").text
    assert f"/manage/task/{number}" in page
    assert f"/manage/verify/{number}" not in page
    for path in ("/manage/verify", "/manage/people", "/manage/analytics", "/manage/agreement", "/training", "/manage"):
        assert manager.get(path).status_code == 200
    for path in ("/inspect", "/training"):
        assert inspector.get(path).status_code == 200
    assert inspector.get("/inspect/song/s1").status_code == 403
