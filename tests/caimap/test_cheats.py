"""People who cheat, on a real database: nothing of theirs is taken unseen, and no sample can be read off."""

from __future__ import annotations

import dataclasses
import datetime as dt
import re

import pytest
from sqlalchemy import select
from tests.caimap_bench import StudyBench, description

from music_evals.caimap.domain import assurance, ledger, structure
from music_evals.caimap.domain.grades import MAX_WARNINGS
from music_evals.caimap.domain.values import ScoreSheet, Section, Song, Structure, Tagged
from music_evals.caimap.services import annotating, inspecting, managing, people, views
from music_evals.caimap.services.study import Settings
from music_evals.caimap.storage.store import StaleError, sqlite_url
from music_evals.caimap.storage.tables import SongRow, TaskRow, WarningRow
from music_evals.errors import InvalidAnnotationError

LINES = tuple(f"春眠不觉{end}" for end in "晓鸟声少早好笑照")
KINDS = ("verse1", "chorus1", "verse2", "bridge1", "chorus2")


def long_songs(bench: StudyBench, n: int) -> None:
    songs = [Song(f"s{number}", LINES, 40.0, rhymes=(True,) * len(LINES), theme="春") for number in range(n)]
    managing.add_songs(bench.service, bench.ADMIN, songs)


def labelled(*labels: str) -> Structure:
    """Cut the song into as many parts as there are labels."""
    cut = [LINES[at * len(LINES) // len(labels) : (at + 1) * len(LINES) // len(labels)] for at in range(len(labels))]
    patterns = [tuple(structure.line_pattern(line, rhymes=True) for line in lines) for lines in cut]
    return Structure(tuple(map(Section, labels, cut, patterns)), "春")


def hand_in(bench: StudyBench, who: int, task: int, given) -> None:
    annotating.submit(bench.service, who, task, bench.version(TaskRow, task), given)


def warned(bench: StudyBench, who: int) -> list[str]:
    return [one.kind for one in reversed(people.cautions(bench.service, who))]


@pytest.mark.slow
def test_two_who_do_nothing_are_not_paid_but_excluded(bench: StudyBench) -> None:
    long_songs(bench, 60)
    for who in (bench.PRO, bench.OTHER_PRO):
        for _ in range(60):
            task = bench.take(who, listens=False)
            bench.clock.wait(2)
            hand_in(bench, who, task.id, labelled("verse1"))
        bench.clock.wait(days=1, seconds=1)
    with bench.store.reading() as session:
        assert set(session.scalars(select(TaskRow.state))) == {"submitted"}
    assert managing.ledger_of(bench.service, bench.ADMIN) == []
    assert warned(bench, bench.PRO) == warned(bench, bench.OTHER_PRO) == ["short_visit"] * 60
    bench.clock.wait(days=7)
    closed = managing.close_week(bench.service, bench.ADMIN, dt.date(2026, 3, 2))
    assert closed[bench.PRO].excluded
    assert closed[bench.OTHER_PRO].excluded


def played(bench: StudyBench, who: int, until: int, step: int = 5) -> int:
    """Play a part of a song, and then wait for as long as it lasts."""
    task = bench.take(who, listens=False)
    annotating.record(bench.service, who, task.id, [{"kind": "play", "position_sec": 0}])
    for at in range(step, until + 1, step):
        bench.clock.wait(5)
        annotating.record(bench.service, who, task.id, [{"kind": "beat", "position_sec": at}])
    annotating.record(bench.service, who, task.id, [{"kind": "pause", "position_sec": until}])
    bench.clock.wait(40 + who)
    return int(task.id)


def test_what_was_hardly_played_or_not_labelled_warns(bench: StudyBench) -> None:
    long_songs(bench, 8)
    for until, step, given, expected in (
        (15, 5, labelled("verse1", "chorus1"), ["unheard"]),
        (40, 40, labelled("verse1", "chorus1"), ["unheard"]),  # 40 s of song in 5 s
        (20, 5, labelled("verse1", "chorus1"), []),
        (20, 5, labelled("verse1"), ["unchanged"]),
        (20, 5, labelled("chorus1", "chorus1"), ["unchanged"]),
    ):
        before = len(warned(bench, bench.PRO))
        hand_in(bench, bench.PRO, played(bench, bench.PRO, until, step), given)
        assert warned(bench, bench.PRO)[before:] == expected
        bench.clock.wait(before * 7)


def test_a_task_is_judged_by_its_own_times_also_after_the_clock_was_set_back(bench: StudyBench) -> None:
    long_songs(bench, 4)
    task = bench.take(bench.PRO, listens=False)
    bench.clock.wait(2)
    hand_in(bench, bench.PRO, task.id, labelled("verse1", "chorus1"))
    bench.clock.wait(-3600)  # it was an hour ahead
    hand_in(bench, bench.PRO, played(bench, bench.PRO, 40), labelled("verse1", "chorus1"))
    assert warned(bench, bench.PRO) == ["short_visit"]


def test_structures_that_are_all_alike_warn_from_the_fifth(bench: StudyBench) -> None:
    long_songs(bench, 12)
    for number in range(6):  # two forms in turn
        task = bench.take(bench.PRO)
        bench.clock.wait(number * 11)
        hand_in(bench, bench.PRO, task.id, labelled(*KINDS[: 2 + number % 2]))
    assert warned(bench, bench.PRO) == ["all_alike"] * 2
    for number in range(6):
        task = bench.take(bench.OTHER_PRO)
        bench.clock.wait(number * 11)
        hand_in(bench, bench.OTHER_PRO, task.id, labelled(*KINDS[number % 5 :], "ending1"))
    assert "all_alike" not in warned(bench, bench.OTHER_PRO)


@pytest.mark.slow
def test_times_of_a_script_warn(bench: StudyBench) -> None:
    long_songs(bench, 12)
    for who, extra in ((bench.PRO, 0), (bench.OTHER_PRO, 9)):
        for number in range(5):
            task = annotating.take_next(bench.service, who)
            annotating.open_task(bench.service, who, task.id)
            bench.clock.wait(1 + number * extra)
            bench.listen(who, task.id)
            hand_in(bench, who, task.id, labelled(*KINDS[number:], *KINDS[:number]))
    assert warned(bench, bench.PRO) == ["regular_timing"]
    assert warned(bench, bench.OTHER_PRO) == []


def equal_passes(bench: StudyBench, *structures: Structure) -> list[int]:
    numbers = []
    for who, given in zip((bench.PRO, bench.OTHER_PRO), structures, strict=True):
        task = bench.take(who)
        hand_in(bench, who, task.id, given)
        bench.clock.wait(days=1, seconds=1)
        numbers.append(int(task.id))
    return numbers


@pytest.mark.parametrize(("accepted", "agreements"), [(("verse1", "chorus1"), 1.0), (("bridge1", "verse2"), 0.0)])
def test_an_inspector_sees_a_sample_of_equal_passes_and_both_are_judged(bench, accepted, agreements) -> None:
    bench.service.configure(Settings(seed=1, share=0.0, congruent_share=1.0))
    long_songs(bench, 1)
    numbers = equal_passes(bench, labelled("verse1", "chorus1"), labelled("verse1", "chorus1"))
    assert inspecting.waiting(bench.service, bench.INSPECTOR)[0] == ["s0"]
    for who, number in zip((bench.PRO, bench.OTHER_PRO), numbers, strict=True):
        assert views.task_view(bench.service, who, number).task.state == "submitted"
    inspecting.settle(bench.service, bench.INSPECTOR, "s0", bench.version(SongRow, "s0"), labelled(*accepted))
    with bench.store.reading() as session:
        assert [session.get(TaskRow, number).agreement for number in numbers] == [agreements] * 2
        assert session.get(SongRow, "s0").state == "describing"
        kinds = list(session.scalars(select(WarningRow.kind)))
    assert kinds == ([] if agreements == 1.0 else ["wrong_together"] * MAX_WARNINGS)


def test_a_share_of_equal_passes_is_seen_and_the_draw_is_the_studys_own() -> None:
    drawn = [[assurance.is_drawn(f"structure/{song}", seed=seed, share=0.2) for song in range(2000)] for seed in (1, 2)]
    assert all(340 < sum(row) < 460 for row in drawn)  # 400 of 2,000, three standard errors
    both = sum(first and second for first, second in zip(*drawn, strict=True))
    assert 50 < both < 110  # 80 where they are independent
    assert not any(assurance.is_drawn(str(number), seed=1, share=0.0) for number in range(100))
    assert all(assurance.is_drawn(str(number), seed=1, share=1.0) for number in range(100))


def test_settings_that_were_stored_before_have_the_share(bench: StudyBench) -> None:
    stored = Settings(seed=3).to_dict()
    del stored["congruent_share"]
    assert Settings.from_dict(stored) == Settings(seed=3)


# descriptions


def describing(bench: StudyBench, n: int) -> None:
    bench.songs(*(f"s{number}" for number in range(n)))
    with bench.store.writing() as session:
        for song in session.scalars(select(SongRow)):
            song.state = "describing"


def own_words(number: int, group: str = "amateur"):
    """Return a description with a text of its own."""
    given = description(group)
    text = "".join(chr(0x4E00 + 97 * number + at) for at in range(60))
    return dataclasses.replace(given, overall_text=text)


def describe(bench: StudyBench, who: int, number: int) -> int:
    task = bench.take(who)
    bench.listen(who, task.id)
    bench.clock.wait(number * 13 % 60)
    hand_in(bench, who, task.id, own_words(number))
    return int(task.id)


def seen_by(bench: StudyBench, who: int) -> list:
    """Return all that an author is told of their work, but for its numbers and songs."""
    standing, so_far = people.standing(bench.service, who), people.so_far(bench.service, who)
    tasks = [(task.kind, task.state) for task in views.tasks_of(bench.service, who)]
    remarks = [views.task_view(bench.service, who, task.id).remarks for task in views.tasks_of(bench.service, who)]
    entries = [entry.cents for entry in managing.ledger_of(bench.service, who)]
    return [standing.counts, standing.balance, so_far, tasks, remarks, entries]


@pytest.mark.slow
def test_what_became_of_descriptions_is_shown_when_their_block_is_complete(bench: StudyBench) -> None:
    bench.service.configure(Settings(seed=1, share=0.2))
    describing(bench, 12)
    for number in range(4):
        task = describe(bench, bench.FAN, number)
        with bench.store.reading() as session:
            sampled = session.get(TaskRow, task).state == "sampled"
        if sampled:
            points = dict(assurance.FORMS["amateur"])
            inspecting.score(
                bench.service, ScoreSheet(task, bench.INSPECTOR, points, "好"), bench.version(TaskRow, task)
            )
        assert seen_by(bench, bench.FAN) == [
            {("amateur", "submitted"): number + 1}, 0, None, [("amateur", "submitted")] * (number + 1),
            [[]] * (number + 1), [],
        ]  # fmt: skip
    owed = ledger.balances(managing.ledger_of(bench.service, bench.ADMIN))[bench.FAN]
    assert owed == sum(state == "accepted" for state in states(bench)) * 1000 > 0
    describe(bench, bench.FAN, 4)
    counts, balance, *_, entries = seen_by(bench, bench.FAN)
    assert sum(counts.values()) == 5
    assert counts["amateur", "accepted"] * 1000 == balance == sum(entries)
    assert balance >= owed


def states(bench: StudyBench) -> list[str]:
    with bench.store.reading() as session:
        return list(session.scalars(select(TaskRow.state).order_by(TaskRow.id)))


def test_money_is_not_withheld_for_ever_and_what_was_shown_stays_so(bench: StudyBench) -> None:
    bench.service.configure(Settings(seed=2, share=0.2))
    describing(bench, 12)
    for number in range(3):
        describe(bench, bench.FAN, number)
    assert people.standing(bench.service, bench.FAN).balance == 0
    bench.clock.wait(days=14)
    shown = people.standing(bench.service, bench.FAN)
    assert shown.balance == states(bench).count("accepted") * 1000 > 0
    describe(bench, bench.FAN, 3)  # of the same block, which is read by now
    after = people.standing(bench.service, bench.FAN)
    assert after.balance == shown.balance
    assert after.counts["amateur", "submitted"] == states(bench)[:3].count("sampled") + 1


def test_a_closed_week_shows_its_descriptions(bench: StudyBench) -> None:
    bench.service.configure(Settings(seed=1, share=0.2))
    describing(bench, 12)
    for number in range(4):
        describe(bench, bench.FAN, number)
    with bench.store.writing() as session:
        session.add(WarningRow(person=bench.FAN, task=1, kind="restless", moment=bench.clock()))
    bench.clock.wait(days=7)
    managing.close_week(bench.service, bench.ADMIN, dt.date(2026, 3, 2))
    paid = states(bench).count("accepted") * 1000
    assert people.standing(bench.service, bench.FAN).balance == paid > 0


@pytest.mark.slow
def test_after_a_block_was_read_the_rest_of_it_is_drawn_with_the_whole_share() -> None:
    rest = [place for place in range(5000) if not assurance.is_sampled(1, "amateur", place, seed=7)]
    unread = sum(assurance.is_scored(1, "amateur", place, seed=7) for place in rest) / len(rest)
    read = sum(assurance.is_scored(1, "amateur", place, seed=7, is_read=True) for place in rest) / len(rest)
    assert unread == pytest.approx(0.05, abs=0.011)  # three standard errors of 4,000
    assert read == pytest.approx(0.2, abs=0.019)
    assert all(assurance.is_scored(1, "amateur", place, seed=7) for place in set(range(5000)) - set(rest))


def test_the_same_tags_in_many_dimensions_are_asked_back(bench: StudyBench) -> None:
    describing(bench, 2)
    task = bench.take(bench.FAN)
    bench.listen(bench.FAN, task.id)
    names = list(description("amateur").dimensions)
    words = [f"词{number}" for number in range(15)]
    turned = {name: Tagged(tuple((words * 3)[3 * at : 3 * at + 3])) for at, name in enumerate(names)}
    same = {name: Tagged(("好听", "温柔", "舒服")[at % 3 :] + ("好听", "温柔", "舒服")[: at % 3])
            for at, name in enumerate(names)}  # fmt: skip
    for said in (same, turned):
        with pytest.raises(InvalidAnnotationError) as refused:
            hand_in(bench, bench.FAN, task.id, dataclasses.replace(own_words(0), dimensions=said))
        assert refused.value.kind == "tags_repeated"
    few = {name: Tagged(("好听", f"词{at}", f"语{at}")) for at, name in enumerate(names)}  # one tag in all is usual
    hand_in(bench, bench.FAN, task.id, dataclasses.replace(own_words(0), dimensions=few))


def test_copies_of_ones_own_and_of_others_of_the_song_warn(bench: StudyBench) -> None:
    describing(bench, 3)
    first = own_words(1)
    for number, given in enumerate(
        (first, own_words(2), dataclasses.replace(first, overall_text="好" + first.overall_text))
    ):
        task = bench.take(bench.FAN)
        bench.listen(bench.FAN, task.id)
        bench.clock.wait(number * 17)
        hand_in(bench, bench.FAN, task.id, given)
    assert warned(bench, bench.FAN) == ["copied"]
    with bench.store.reading() as session:
        texts = {row.song: row.result["overall_text"] for row in session.scalars(select(TaskRow))}
    task = bench.take(bench.THIRD_PRO)
    bench.listen(bench.THIRD_PRO, task.id)
    copied = dataclasses.replace(description("professional"), overall_text=texts[task.song])
    hand_in(bench, bench.THIRD_PRO, task.id, copied)
    assert warned(bench, bench.THIRD_PRO) == ["copied"]


def test_a_forged_version_does_not_tell_what_became_of_a_description(bench: StudyBench) -> None:
    bench.service.configure(Settings(seed=1, share=0.2))
    describing(bench, 6)
    answers = set()
    for number in range(4):
        task = describe(bench, bench.FAN, number)
        for version in range(1, 9):
            with pytest.raises(StaleError) as refused:
                annotating.save(bench.service, bench.FAN, task, version, {"overall_text": "字"})
            answers.add((refused.value.kind, str(refused.value)))
    assert len(answers) == 1
    assert {"accepted", "sampled"} <= set(states(bench))


# every page that an annotator can open


def study_with_one(tmp_path, became: str):
    """Return a study in which the first description of an amateur was accepted, sampled or rejected."""
    seed = next(seed for seed in range(99) if (became != "accepted") == assurance.is_scored(7, "amateur", 0, seed=seed))
    bench = StudyBench(sqlite_url(tmp_path / f"{became}.db"), Settings(seed=seed, share=0.2))
    describing(bench, 3)
    for song in ("s1", "s2"):  # there is nothing to choose from
        with bench.store.writing() as session:
            session.get(SongRow, song).state = "finished"
    task = describe(bench, bench.FAN, 0)
    if became == "rejected":
        points = dict.fromkeys(assurance.FORMS["amateur"], 0)
        inspecting.score(bench.service, ScoreSheet(task, bench.INSPECTOR, points, "空"), bench.version(TaskRow, task))
    with bench.store.reading() as session:
        assert session.get(TaskRow, task).state == became
    return bench, task


def told(text: str, browser) -> str:
    """Return an answer without what is drawn for it alone."""
    return re.sub(r'nonce="[^"]*"', "", text.replace(browser.csrf, ""))


def answers_to(bench: StudyBench, task: int, folder) -> dict[str, tuple[int, str]]:
    """Return what an annotator is answered by every page, and by forms that are sent to their old task."""
    from tests.caimap.routes import PAGES
    from tests.caimap.test_web import Browser

    from music_evals.caimap.web.app import build_app

    browser = Browser(build_app(bench.service, folder), bench, bench.FAN)
    values = {"{number:id}": str(task), "{group}": "amateur", "{dimension}": "song_purpose", "{token}": "none"}
    answers = {}
    for page in PAGES:
        if "{person:id}" in page.path or "{song}" in page.path:
            continue
        path = page.path
        for name, value in values.items():
            path = path.replace(name, value)
        if page.method == "GET":
            found = browser.get(path)
            answers[path] = (found.status_code, told(found.text, browser))
        elif path.startswith(f"/task/{task}/"):
            for version in range(1, 8):
                sent = {"version": str(version), "overall_text": "字", "reason": "poor_audio", "sure": "1"}
                body = {
                    "version": version,
                    "fields": {"overall_text": "字"},
                    "events": [{"kind": "play", "position_sec": 0}],
                }
                found = browser.send(path, body) if path.endswith(("draft", "events")) else browser.post(path, **sent)
                answers[f"{path} {version}"] = (found.status_code, told(found.text, browser))
    return answers


@pytest.mark.slow
def test_no_page_tells_an_annotator_what_became_of_a_description(tmp_path) -> None:
    pytest.importorskip("starlette.testclient")
    (tmp_path / "audio").mkdir()
    seen = {}
    for became in ("accepted", "sampled", "rejected"):
        bench, task = study_with_one(tmp_path, became)
        seen[became] = answers_to(bench, task, tmp_path / "audio")
        bench.store.close()
    assert len(seen["accepted"]) > 40
    assert sum(status == 200 for status, _ in seen["accepted"].values()) > 8
    for path, answer in seen["accepted"].items():
        assert seen["sampled"][path] == answer, path
        assert seen["rejected"][path] == answer, path


def test_an_inspector_reads_that_both_are_the_same(bench: StudyBench, tmp_path) -> None:
    pytest.importorskip("starlette.testclient")
    from tests.caimap.test_web import Browser

    from music_evals.caimap.web.app import build_app

    bench.service.configure(Settings(seed=1, share=0.0, congruent_share=1.0))
    long_songs(bench, 2)
    equal_passes(bench, labelled("verse1", "chorus1"), labelled("verse1", "chorus1"))
    (song,) = inspecting.waiting(bench.service, bench.INSPECTOR)[0]
    (tmp_path / "audio").mkdir()
    inspector = Browser(build_app(bench.service, tmp_path / "audio"), bench, bench.INSPECTOR)
    assert "两份标注相同" in inspector.get(f"/inspect/song/{song}").text
    equal_passes(bench, labelled("verse1", "chorus1"), labelled("verse1", "bridge1"))
    (other,) = set(inspecting.waiting(bench.service, bench.INSPECTOR)[0]) - {song}
    assert "两份标注相同" not in inspector.get(f"/inspect/song/{other}").text
