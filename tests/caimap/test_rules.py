"""The rules of the annotation platform, one test a requirement at least; no web, no database."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS
from music_evals.caimap.domain import assignment, assurance, description, grades, ledger, listening, machine, structure
from music_evals.caimap.domain.assurance import evaluate_round
from music_evals.caimap.domain.values import (
    ROLES,
    Description,
    Effects,
    Person,
    PlaybackEvent,
    ScoreSheet,
    Section,
    Song,
    Structure,
    Tagged,
    Task,
    TimedLine,
)
from music_evals.errors import InvalidAnnotationError, InvalidInputError

NOW = dt.datetime(2026, 3, 4, 12, tzinfo=dt.UTC)
SONG = Song("s1", ("春眠不觉晓", "处处闻啼鸟"), 60.0, rhymes=(True, True), theme="春天")


def described(group: str = "amateur", tags: int = 3, text: str = "字" * 50) -> Description:
    names = [name for name in DIMENSIONS[group] if name != AUDIO_EFFECTS]
    said = {name: Tagged(tuple(f"词{at}-{number}" for number in range(tags))) for at, name in enumerate(names)}
    return Description(group, text, said, Effects(clear=True))


def one(*lines: str, label: str = "verse1", theme: str = "春天") -> Structure:
    return Structure((Section(label, lines, tuple(structure.line_pattern(line, True) for line in lines)),), theme)


# --- states


@pytest.mark.parametrize("table", [machine.SONG, machine.TASK])
def test_a_step_is_taken_by_its_roles_only_and_everything_else_is_refused(table: machine.Machine) -> None:
    actions = {action for _, action in table}
    for state in machine.states(table):
        for action in actions:
            for role in (*ROLES, machine.SYSTEM):
                found = table.get((state, action))
                if found is not None and role in found.roles:
                    assert machine.step(table, state, action, role) == found.target
                else:
                    with pytest.raises(machine.ForbiddenStepError):
                        machine.step(table, state, action, role)


def test_every_state_is_reached_and_type_b_opens_after_type_a() -> None:
    for table, first in ((machine.SONG, machine.FIRST_SONG_STATE), (machine.TASK, machine.FIRST_TASK_STATE)):
        reached = {first}
        while more := {found.target for (source, _), found in table.items() if source in reached} - reached:
            reached |= more
        assert reached == set(machine.states(table))
    into = {action for (_, action), found in machine.SONG.items() if found.target == "describing"}
    assert into == {"match", "settle", "reject", "return", "redo_description"}


def test_the_drawing_has_one_arrow_a_step() -> None:
    arrows = [line for line in machine.drawing("song").splitlines() if "-->" in line and "[*]" not in line]
    assert len(arrows) == len(machine.SONG)
    assert "    structuring --> inspecting: differ (system)" in arrows


def test_a_page_that_is_loaded_again_while_it_plays_begins_a_new_sitting() -> None:
    events = [PlaybackEvent("play", 0, 0), PlaybackEvent("beat", 5, 5), PlaybackEvent("play", 0, 8)]
    events += [PlaybackEvent("beat", at, 8 + at) for at in range(5, 61, 5)]
    found = listening.listening_of(events, 60.0)
    assert (found.complete, found.problems) == (True, ())
    assert not listening.listening_of(events[:-3], 60.0).complete
    assert [listening.listening_of(events[:n], 60.0).may_write(60.0) for n in (8, 9)] == [False, True]


# --- requirement 1: roles


def test_each_right_belongs_to_its_roles() -> None:
    for right, allowed in machine.RIGHTS.items():
        for role in ROLES:
            if role in allowed:
                machine.check_right(Person(1, role), right)
            else:
                with pytest.raises(machine.ForbiddenError):
                    machine.check_right(Person(1, role), right)
    with pytest.raises(machine.ForbiddenError):
        machine.check_right(Person(1, "amateur", withdrawn=True), "annotate")
    with pytest.raises(machine.ForbiddenError):
        machine.check_right(Person(1, "amateur", excluded=True), "annotate")
    machine.check_right(Person(1, "amateur", excluded=True), "ask")


def test_annotators_see_their_own_tasks_only() -> None:
    task = Task(1, "s1", "amateur", 7, "working")
    assert machine.may_open(Person(7, "amateur"), task)
    assert not machine.may_open(Person(8, "amateur"), task)
    assert machine.may_open(Person(9, "inspector"), task)


# --- requirements 2 and 16: tasks and assignment


@pytest.mark.requirement(number=16)
def test_the_second_pass_waits_and_is_another_persons() -> None:
    first = Task(1, "s1", "structure", 1, "submitted", 1, submitted=NOW - dt.timedelta(hours=23))
    ask = {"states": {"s1": "structuring"}, "now": NOW}
    assert assignment.offers(Person(2, "professional"), tasks=[first], **ask) == []
    early = dataclasses.replace(first, submitted=NOW - dt.timedelta(hours=24))
    assert assignment.offers(Person(2, "professional"), tasks=[early], **ask) == [("s1", "structure", 2)]
    assert assignment.offers(Person(1, "professional"), tasks=[early], **ask) == []
    working = dataclasses.replace(early, state="working", submitted=None)
    assert assignment.offers(Person(2, "professional"), tasks=[working], **ask) == []


@pytest.mark.requirement(number=2)
def test_descriptions_open_after_the_structure_and_once_a_group() -> None:
    amateur, professional = Person(1, "amateur"), Person(2, "professional")
    assert assignment.offers(amateur, {"s1": "structuring"}, [], now=NOW) == []
    assert assignment.offers(amateur, {"s1": "describing"}, [], now=NOW) == [("s1", "amateur", 1)]
    assert assignment.offers(professional, {"s1": "describing"}, [], now=NOW) == [("s1", "professional", 1)]
    taken = [Task(1, "s1", "amateur", 5, "working")]
    assert assignment.offers(amateur, {"s1": "describing"}, taken, now=NOW) == []
    assert assignment.offers(Person(1, "amateur", excluded=True), {"s1": "describing"}, [], now=NOW) == []


def test_a_rejected_description_is_another_persons() -> None:
    rejected = [Task(1, "s1", "amateur", 1, "rejected")]
    assert assignment.offers(Person(1, "amateur"), {"s1": "describing"}, rejected, now=NOW) == []
    assert assignment.offers(Person(2, "amateur"), {"s1": "describing"}, rejected, now=NOW) == [("s1", "amateur", 1)]


@pytest.mark.requirement(number=16)
def test_clusters_are_spread_evenly_over_an_annotator() -> None:
    clusters: dict[str, int | None] = {f"s{n}": n % 4 for n in range(40)}
    person, tasks, rng = Person(1, "amateur"), [], np.random.default_rng(0)
    for number in range(20):
        found = assignment.offers(person, dict.fromkeys(clusters, "describing"), tasks, now=NOW)
        chosen = assignment.choose(found, clusters, [clusters[task.song] for task in tasks], rng=rng)
        assert chosen is not None
        tasks.append(Task(number, chosen.song, chosen.kind, 1, "working"))
        had = Counter(clusters[task.song] for task in tasks)
        assert max(had.values()) - min(had.get(cluster, 0) for cluster in range(4)) <= 1
    assert assignment.choose([], clusters, [], rng=rng) is None


# --- requirements 4 to 6: screening, structure, congruence


@pytest.mark.requirement(number=4)
def test_a_song_is_skipped_with_a_reason() -> None:
    structure.check_screening("poor_audio")
    structure.check_screening("other", "太短")
    for reason, note in (("", ""), ("boring", ""), ("other", " ")):
        with pytest.raises(InvalidAnnotationError):
            structure.check_screening(reason, note)


@pytest.mark.requirement(number=5)
def test_the_editor_starts_from_the_rhymes_of_the_preparation() -> None:
    before = structure.pre_annotated(SONG)
    assert before.sections == (Section("verse1", SONG.lines, ("ccccR", "ccccR")),)
    structure.check_structure(before)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: one("abc"), "Chinese"),
        (lambda: Structure((Section("verse1", ("春",), ("c",)), Section("verse2", (), ())), "x"), "no line"),
        (lambda: one("春", theme=""), "what the song is about"),
        (lambda: Structure((Section("verse1", ("春 眠",), ("ccc",)),), "x"), "is not that of"),
        (lambda: one("春" * 121), "120"),
    ],
)
def test_structures_that_cannot_enter_the_data_are_refused(made, message: str) -> None:
    with pytest.raises(InvalidAnnotationError, match=message):
        structure.check_structure(made())


@pytest.mark.requirement(number=6)
def test_equal_annotations_are_merged_and_different_ones_are_not() -> None:
    first = one("春眠不觉晓")
    unrhymed = Structure((Section("verse1", ("春眠不觉晓 ",), ("ccccc ",)),), "春天的早晨")
    assert not structure.congruent(first, unrhymed)
    assert structure.congruent(unrhymed, Structure((Section("verse1", ("春眠不觉晓",), ("ccccc",)),)))
    same = one("春眠不觉晓", theme="春天的早晨")
    assert structure.merge(first, same).theme == "春天的早晨"
    for other in (one("春眠不觉晓", label="chorus1"), one("春眠不觉晓", "处处")):
        assert not structure.congruent(first, other)
        with pytest.raises(InvalidAnnotationError, match="inspector"):
            structure.merge(first, other)


def test_differences_mark_what_differs_and_keep_every_line() -> None:
    # one line is merged by the second annotator; the label of the last differs
    first = Structure((Section("verse1", ("甲乙", "丙丁", "戊己"), ("cc", "cR", "cR")),), "x")
    second = Structure((Section("verse1", ("甲乙 丙丁",), ("cc cR",)), Section("chorus1", ("戊己",), ("cR",))), "x")
    rows = structure.differences(first, second)
    assert [row.first[1] for row in rows if row.first] == ["甲乙", "丙丁", "戊己"]
    assert [row.second[1] for row in rows if row.second] == ["甲乙 丙丁", "戊己"]
    assert rows[-1].fields == ("label",)
    assert structure.agreement(first, first) == 1.0
    assert structure.agreement(first, second) == 0.0


def verses(*parts: tuple[str, tuple[str, ...]]) -> Structure:
    return Structure(tuple(Section(label, lines, tuple("c" * len(line) for line in lines)) for label, lines in parts))


def test_sections_without_lines_and_where_sections_begin_are_marked() -> None:
    plain = verses(("verse1", ("甲乙", "丙丁", "戊己")))
    intro = verses(("intro1", ()), ("verse1", ("甲乙", "丙丁", "戊己")))
    (gap, *rows) = structure.differences(intro, plain)
    assert (gap.first, gap.second, gap.fields) == (("intro1", "", "", ""), None, ("label", "line", "rhyme", "reading"))
    assert not any(row.fields for row in rows)
    assert structure.agreement(plain, intro) == structure.agreement(intro, plain) == 3 / 4
    cut = verses(("verse1", ("甲乙",)), ("verse1", ("丙丁", "戊己")))
    rows = structure.differences(cut, plain)
    assert [(row.fields, row.begins) for row in rows] == [
        ((), (True, True)), (("label",), (True, False)), ((), (False, False))
    ]  # fmt: skip
    assert structure.agreement(cut, plain) == 2 / 3
    other = verses(("ending1", ()), ("verse1", ("甲乙", "丙丁", "戊己")))
    assert structure.agreement(intro, other) == 3 / 4


def read(*readings: str, lines: tuple[str, ...] = ("他去银行", "她走了")) -> Structure:
    return Structure((Section("verse1", lines, tuple("c" * len(line) for line in lines), readings),), "x")


def test_a_corrected_reading_is_compared_merged_and_kept() -> None:
    plain, corrected = read(), read("", "liao3")
    assert plain.sections[0].readings == ("", "")
    assert Structure.from_dict(json.loads(json.dumps(corrected.to_dict()))) == corrected
    old = plain.to_dict()
    del old["sections"][0]["readings"]  # as studies have kept them so far
    assert Structure.from_dict(old) == plain
    assert not structure.congruent(plain, corrected)
    assert [row.fields for row in structure.differences(plain, corrected)] == [(), ("reading",)]
    assert structure.differences(plain, corrected)[1].second == ("verse1", "她走了", "ccc", "liao3")
    assert structure.agreement(plain, corrected) == 1 / 2
    assert structure.merge(corrected, read("", "liao3")).sections[0].readings == ("", "liao3")
    with pytest.raises(InvalidAnnotationError):
        read("hang2")  # one of two


@pytest.mark.parametrize("reading", ["hang2", "nü3", "lüe4", "er2", "zhuang1", "le5", "ng4", "xiong2"])
def test_a_reading_is_a_syllable_with_its_tone(reading: str) -> None:
    structure.check_structure(read(reading, ""))


@pytest.mark.parametrize(
    "reading", ["hang", "hang6", "hang0", "háng", "fai1", "2", "x", "nv3", "hang2 ", "<b>1", "行2"]
)
def test_anything_else_is_no_reading(reading: str) -> None:
    with pytest.raises(InvalidAnnotationError) as caught:
        structure.check_structure(read(reading, ""))
    assert (caught.value.kind, caught.value.facts["found"]) == ("reading", reading)


def test_the_usual_reading_is_that_of_the_last_character_in_its_line() -> None:
    lines = ["他去银行", "人在旅行 ", "她走了", "女", "", "abc"]
    assert structure.usual_readings(lines) == ["hang2", "xing2", "le5", "nü3", "", ""]


def test_lines_have_the_times_that_the_song_brings_and_no_others() -> None:
    timed = tuple(TimedLine(10.0 * number, line) for number, line in enumerate(["甲乙", "丙丁", "戊己", "甲乙"]))
    song = dataclasses.replace(SONG, timed_lyrics=timed)
    assert structure.line_times(["甲乙", "丙丁", "戊己", "甲 乙"], song) == [0, 10, 20, 30]
    assert structure.line_times(["甲乙", "丙错", "戊己", "甲乙"], song) == [0, 10, 20, 30]  # edited
    assert structure.line_times(["", "甲乙", "丙", "丁", "戊己"], song)[1:] == [0, None, None, 20]
    assert structure.line_times(["甲乙", "丙", "丁戊己", "甲乙"], song) == [0, None, None, 30]  # cut otherwise
    assert structure.line_times(["甲乙", "丙丁"], SONG) == [None, None]
    assert structure.line_times([], song) == []


some_lines = st.lists(st.sampled_from(["甲", "乙 ", "丙"]), max_size=3)
any_structure = st.lists(
    st.tuples(st.sampled_from(["intro1", "verse1", "chorus1"]), some_lines), min_size=1, max_size=4
).filter(lambda parts: any(lines for _, lines in parts))


@given(any_structure, any_structure)
def test_what_is_not_congruent_is_marked_and_costs_accuracy(first_parts, second_parts) -> None:
    first, second = (
        verses(*((label, tuple(lines)) for label, lines in parts)) for parts in (first_parts, second_parts)
    )
    rows = structure.differences(first, second)
    assert structure.congruent(first, second) == (not any(row.fields for row in rows))
    assert structure.congruent(first, second) == (structure.agreement(first, second) == 1.0)
    for at, whole in ((0, first), (1, second)):  # every line and every empty section once, in order
        shown = [row[at] for row in rows if row[at] is not None]
        expected = []
        for section in whole.sections:
            lines = [(section.label, line.rstrip()) for line in section.lines]
            expected += lines or [(section.label, "")]
        assert [place[:2] for place in shown] == expected


# --- requirements 8 and 9: descriptions and listening


@pytest.mark.parametrize("group", DIMENSIONS)
@pytest.mark.requirement(number=8)
def test_limits_of_a_description(group: str) -> None:
    description.check_description(described(group))
    for wrong in (described(group, tags=2), described(group, tags=6), described(group, text="字" * 49 + "  ")):
        with pytest.raises(InvalidAnnotationError):
            description.check_description(wrong)


def played(*, upto: float = 60.0, start: float = 0.0, tempo: float = 1.0) -> list[PlaybackEvent]:
    """What an honest page sends, or with a tempo one that claims to play faster than time."""
    beats = [PlaybackEvent("beat", at, start + at / tempo) for at in np.arange(5.0, upto, 5.0)]
    return [PlaybackEvent("play", 0, start), *beats, PlaybackEvent("ended", upto, start + upto / tempo)]


@pytest.mark.requirement(number=9)
def test_a_whole_song_in_one_sitting_counts() -> None:
    found = listening.check_listening(played(), 60.0)
    assert found.complete
    assert found.problems == ()


def test_half_a_song_or_two_halves_do_not() -> None:
    with pytest.raises(InvalidAnnotationError, match="30 of 60"):
        listening.check_listening(played(upto=30), 60.0)
    later = [PlaybackEvent("play", 30, 2000), *(PlaybackEvent("beat", at, 1970 + at) for at in range(35, 61, 5))]
    with pytest.raises(InvalidAnnotationError, match="one sitting"):
        listening.check_listening([*played(upto=30), *later], 60.0)


def test_a_pause_is_allowed() -> None:
    on = [PlaybackEvent("play", 30, 100), *(PlaybackEvent("beat", at, 70 + at) for at in range(35, 61, 5))]
    assert listening.check_listening([*played(upto=30), *on], 60.0).complete


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        (PlaybackEvent("seek", 10, 10.1, 50), "seek_before_end"),
        (PlaybackEvent("rate", 10, 10.1, 2.0), "rate_before_end"),
        (PlaybackEvent("write", 10, 10.1), "early_writing"),
        (PlaybackEvent("paste", 40, 40.1), "paste"),
    ],
)
@pytest.mark.requirement(number=9)
def test_what_breaks_a_rule_of_listening_is_refused(extra: PlaybackEvent, problem: str) -> None:
    events = sorted([*played(), extra], key=lambda event: event.received_sec)
    with pytest.raises(InvalidAnnotationError, match=problem):
        listening.check_listening(events, 60.0)


def test_a_report_of_the_beginning_that_was_long_on_its_way_breaks_nothing() -> None:
    late = [PlaybackEvent("play", 0, 3.0), *(PlaybackEvent("beat", at, 0.1 + at) for at in range(5, 61, 5))]
    found = listening.listening_of(late, 60.0)
    assert (found.complete, found.problems) == (True, ())


def test_after_the_song_it_may_be_searched_and_sped_up() -> None:
    after = [PlaybackEvent("seek", 60, 61, 20), PlaybackEvent("rate", 20, 62, 2.0), PlaybackEvent("write", 20, 63)]
    assert listening.check_listening([*played(), *after], 60.0).problems == ()


@pytest.mark.parametrize("tempo", [1.1, 2.0, 100.0])
def test_a_forged_request_cannot_play_faster_than_time(tempo: float) -> None:
    with pytest.raises(InvalidAnnotationError, match=r"faster_than_time|one sitting"):
        listening.check_listening(played(tempo=tempo), 60.0)


@given(
    st.lists(
        st.tuples(st.sampled_from(listening.EVENT_KINDS), st.floats(0, 60), st.floats(0, 8), st.floats(0.25, 4)),
        max_size=60,
    )
)
def test_no_sequence_of_events_hears_more_than_the_time_that_passed(given_events) -> None:
    clock, events = 0.0, []
    for kind, position, passed, value in given_events:
        clock += passed
        events.append(PlaybackEvent(kind, position, clock, value))
    found = listening.listening_of(events, 60.0)
    assert found.longest_sec <= clock + listening.AHEAD
    assert not found.complete or clock >= 60 - listening.SLACK - listening.AHEAD


def test_events_that_no_player_sends_are_refused() -> None:
    wrong = [
        PlaybackEvent("dance", 0, 0),
        PlaybackEvent("beat", -1, 0),
        PlaybackEvent("beat", 99, 0),
        PlaybackEvent("beat", float("nan"), 0),
        PlaybackEvent("rate", 0, 0, 9),
    ]
    for event in wrong:
        with pytest.raises(InvalidAnnotationError):
            listening.listening_of([event], 60.0)
    with pytest.raises(InvalidAnnotationError, match="order"):
        listening.listening_of([PlaybackEvent("play", 0, 5), PlaybackEvent("beat", 0, 4)], 60.0)


# --- requirement 10: assurance


@pytest.mark.parametrize("group", assurance.FORMS)
def test_the_forms_give_100_points_and_speak_of_every_dimension(group: str) -> None:
    form = assurance.FORMS[group]
    assert sum(form.values()) == 100
    assert {row for row, _ in form} == {*DIMENSIONS[group], "overall_text"}
    full = ScoreSheet(1, 9, form)
    assurance.check_sheet(full, group)
    assert assurance.passes(full)
    for wrong in (dict(list(form.items())[1:]), {key: most + 0.5 for key, most in form.items()}):
        with pytest.raises(InvalidAnnotationError):
            assurance.check_sheet(ScoreSheet(1, 9, wrong), group)


LETTERS = {"L": "labels", "R": "relevance", "I": "innovation", "D": "description", "T": "thoroughness", "W": "words",
           "detail": "detail"}  # fmt: skip
TABLES = {  # as printed: row, points, their parts (of the textual description, W: word count and innovation)
    "professional": """
        expressive_impact_singer_accompaniment 13 L4 R4 I5
        emotional_impact_lyrics_melody 13 L4 R4 I5
        overall_text 8 D3 W5
        musical_genres 8 detail8
        tempo_rhythm 5 R5
        instrumentation 12 L5 R3 D2 T2
        song_purpose 6 R3 I3
        culture_region 6 R3 I3
        target_audience 6 R3 I3
        vocal_components 12 L5 R3 D2 T2
        audio_effects 5 R5
        lyric_themes 6 R3 I3""",
    "amateur": """
        perception_of_uniqueness 8 R4 I4
        perception_of_tempo 5 R3 I2
        expressive_impact_singer 13 L4 R4 I5
        emotional_impact_lyrics 13 L4 R4 I5
        overall_text 8 D3 W5
        instrumentation 12 L5 R3 D2 T2
        song_purpose 6 R3 I3
        culture_region 6 R3 I3
        target_audience 6 R3 I3
        vocal_components 12 L5 R3 D2 T2
        audio_effects 5 R5
        lyric_themes 6 R3 I3""",
}


@pytest.mark.parametrize("group", TABLES)
@pytest.mark.requirement(number=10)
def test_tables_6_and_7_as_printed(group: str) -> None:
    form = list(assurance.FORMS[group].items())
    for line in TABLES[group].split("\n")[1:]:
        row, points, *parts = line.split()
        printed = [(part.rstrip("0123456789"), int(re.sub(r"\D", "", part))) for part in parts]
        assert sum(most for _, most in printed) == int(points), row
        mine, form = form[: len(printed)], form[len(printed) :]
        assert mine == [((row, LETTERS[letter]), most) for letter, most in printed]
    assert form == []


def sampled(person: int, n: int, *, seed: int = 3, share: float = 0.2, kind: str = "amateur") -> list[bool]:
    return [assurance.is_sampled(person, kind, place, seed=seed, share=share) for place in range(n)]


def test_the_sample_is_a_fifth_of_each_annotators_results_and_repeats() -> None:
    for person in range(200):  # also of those who do five, or six
        assert [sum(sampled(person, n)) for n in (5, 10, 25)] == [1, 2, 5]
    assert sampled(1, 500) == sampled(1, 500)
    others = (sampled(1, 500, seed=4), sampled(2, 500), sampled(1, 500, kind="professional"))
    assert all(sampled(1, 500) != other for other in others)


@given(st.integers(0, 2**63 - 1), st.integers(1, 1000), st.integers(1, 100), st.integers(0, 3))
def test_every_block_holds_its_share(seed: int, person: int, length: int, blocks: int) -> None:
    for drawn in {0, 1, length // 2, length}:
        found = sampled(person, length * blocks, seed=seed, share=drawn / length)
        assert sum(found) * length == drawn * len(found)


@pytest.mark.slow
def test_each_place_of_a_block_is_drawn_as_often() -> None:
    counts = np.sum([np.reshape(sampled(person, 20), (-1, 5)).sum(axis=0) for person in range(500)], axis=0)
    assert counts.sum() == 2000
    assert np.all(np.abs(counts - 400) < 4 * np.sqrt(2000 * 0.2 * 0.8))  # four standard errors
    # and what was drawn of one block says nothing of the next
    pairs = Counter(tuple(np.argmax(np.reshape(sampled(person, 10), (2, 5)), axis=1)) for person in range(2000))
    assert len(pairs) == 25
    assert max(abs(n - 80) for n in pairs.values()) < 4 * np.sqrt(2000 * 0.04 * 0.96)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), 0.001])
def test_shares_that_no_block_has(share: float) -> None:
    with pytest.raises(InvalidInputError):
        sampled(1, 1, share=share)


# --- requirements 11 to 14: warnings, grades, payments, training


def test_a_short_or_restless_visit_warns() -> None:
    calm = listening.Listening(True, 60, (), 0, 0)

    def warning(found: listening.Listening, page_sec: float) -> str:
        return grades.description_warning(described("amateur"), [], found, [grades.Visit(page_sec, 1, 60)])

    assert warning(calm, 71.9) == "short_visit"
    assert warning(calm, 72) == ""
    assert warning(calm._replace(pauses=24), 300) == ""
    assert warning(calm._replace(pauses=25), 300) == "restless"
    assert warning(calm._replace(pauses=25), 65) == "short_visit"  # one a task


def test_who_searches_a_song_after_hearing_it_is_not_restless() -> None:
    after = [PlaybackEvent(kind, 20, 61 + at, 20) for at in range(20) for kind in ("seek", "play", "pause")]
    found = listening.listening_of([*played(), *after], 60.0)
    assert (found.complete, found.pauses, found.seeks) == (True, 0, 0)
    before = [PlaybackEvent(kind, 0, at) for at in range(13) for kind in ("play", "pause")]
    assert listening.listening_of([*before, *played(start=20)], 60.0).pauses == 13


@pytest.mark.parametrize(
    ("percent", "grade"),
    [(100, "I"), (90, "I"), (89.9, "II"), (70, "II"), (69.9, "III"), (60, "III"), (59.9, "IV"), (0, "IV")],
)
@pytest.mark.requirement(number=12)
def test_grades_of_tables_4_and_5(percent: float, grade: str) -> None:
    assert grades.grade_of(percent) == grade


def test_who_reaches_a_bound_is_not_kept_below_it_by_rounding() -> None:
    # the sum of three times 0.6 is a hair below 1.8
    for n in range(1, 40):
        assert grades.weekly([0.6] * n, [], []) == grades.Week(grades.grade_of(60), "", False)
        assert grades.weekly([0.7] * n, [70.1] * n, []).grade_a == grades.grade_of(70)
    assert grades.weekly([10 / 20, 12 / 20, 14 / 20], [], []).grade_a == grades.grade_of(60)
    assert grades.weekly([0.5999] * 3, [], []).excluded


def test_grade_four_or_two_warnings_exclude() -> None:
    assert grades.weekly([1.0, 0.9], [75.0], []) == ("I", "II", False)
    assert grades.weekly([0.5], [], []).excluded
    assert grades.weekly([], [95.0], ["short_visit", "restless"]).excluded
    assert not grades.weekly([], [], ["restless"]).excluded


def test_a_week_begins_on_monday_in_utc() -> None:
    late = dt.datetime(2026, 3, 9, 1, tzinfo=dt.timezone(dt.timedelta(hours=8)))  # Monday in Beijing, Sunday in UTC
    assert grades.week_of(late) == dt.date(2026, 3, 2)
    with pytest.raises(InvalidInputError):
        grades.week_of(late.replace(tzinfo=None))


def test_payments_reward_and_penalise() -> None:
    rates = ledger.Rates()
    work = [ledger.Entry(1, "work", ledger.earned("structure", rates), "song s1", 4).checked()] * 3
    reward = ledger.week_entry(1, ["I", ""], 3000, rates, "2026-03-02")
    assert reward is not None
    assert ledger.balances([*work, reward]) == {1: 3300}
    penalty = ledger.week_entry(1, ["I", "III"], 3000, rates, "2026-03-02")
    assert penalty is not None
    assert penalty.checked().cents == -300
    assert ledger.week_entry(1, ["I", "II"], 3000, rates, "2026-03-02") is None


def test_entries_of_the_ledger_have_a_reason_and_their_sign() -> None:
    for wrong in (("gift", 1, "x"), ("work", 1, " "), ("work", -1, "x"), ("penalty", 1, "x"), ("payment", 1, "x")):
        with pytest.raises(InvalidInputError):
            ledger.Entry(1, *wrong).checked()
    assert ledger.ledger_csv([ledger.Entry(1, "work", 5, "=1+1")]).splitlines()[1] == "1,work,5,'=1+1,,"


def test_inspectors_discuss_what_spreads_over_ten_points() -> None:
    both = frozenset({1, 2})
    assert evaluate_round({7: {1: 80, 2: 90}}, both).consistent  # 10 is not over 10
    found = evaluate_round({7: {1: 80, 2: 90.5}, 8: {1: 10, 2: 90}, 9: {1: 50}}, both)
    assert found.discussed == (8, 7)
    assert found.missing == ((9, 2),)
    assert not found.consistent


def test_values_round_trip_and_refuse_what_they_cannot_be() -> None:
    assert Description.from_dict(described().to_dict()) == described()
    assert Structure.from_dict(one("春眠").to_dict()) == one("春眠")
    for wrong in (
        lambda: Song("x", (), 1.0),
        lambda: Song("x", ("a",), 0.0, audio="x.flac"),
        lambda: Song("x", ("a",), -1.0),
        lambda: Song("x", ("a",), 1.0, rhymes=(True, False)),
        lambda: Section("refrain1", ("春",), ("c",)),
        lambda: Section("verse1", ("春",), ("cc",)),
        lambda: Tagged(("a", " ")),
        lambda: Person(1, "guest"),
    ):
        with pytest.raises(InvalidAnnotationError):
            wrong()


@pytest.mark.parametrize("tags", [("a", "b", "a"), ("a", " b", "c")])
def test_tags_stand_once_and_without_spaces(tags: tuple[str, ...]) -> None:
    given = described()
    wrong = dataclasses.replace(given, dimensions={**given.dimensions, "instrumentation": Tagged(tags)})
    with pytest.raises(InvalidAnnotationError, match="instrumentation: tags have no spaces"):
        description.check_description(wrong)


@pytest.mark.parametrize("name", ["song", "task"])
def test_the_documentation_draws_the_tables_as_they_are(name: str) -> None:
    page = Path(__file__).parents[2] / "docs" / "tasks" / "caimap.md"
    assert f"```mermaid\n{machine.drawing(name)}```" in page.read_text(encoding="utf-8")


def test_the_documentation_has_a_section_for_each_requirement() -> None:
    page = (Path(__file__).parents[2] / "docs" / "tasks" / "caimap.md").read_text(encoding="utf-8")
    assert [line.split(":")[0] for line in page.splitlines() if line.startswith("### ")] == [
        f"### Requirement {number}" for number in range(1, 17)
    ]
