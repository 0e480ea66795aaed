"""Statistics of agreement: what they are of hand-made annotations, and what a study's report shows."""

from __future__ import annotations

import csv
import datetime as dt
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.caimap_bench import START, StudyBench, description, one_verse

from music_evals.annotations import DIMENSIONS
from music_evals.caimap.domain import assurance, consistency
from music_evals.caimap.domain.consistency import Measurement
from music_evals.caimap.domain.machine import ForbiddenError
from music_evals.caimap.domain.structure import line_pattern
from music_evals.caimap.domain.values import Description, Effects, ScoreSheet, Section, Structure, Tagged
from music_evals.caimap.exchange.reporting import write_report
from music_evals.caimap.services import annotating, managing, oversight, training
from music_evals.caimap.services.oversight import study_agreement
from music_evals.caimap.storage.tables import SheetRow, TaskRow
from music_evals.errors import UnknownNameError
from music_evals.pipelines.descriptions import tag_semantic_similarity

LINES = ("春眠不觉晓", "处处闻啼鸟", "夜来风雨声", "花落知多少")


def song(*labels: str, lines: tuple[str, ...] = LINES, rhyming: tuple[int, ...] = (1, 3)) -> Structure:
    """Return a structure of one label a line."""
    parts = [
        Section(label, (line,), (line_pattern(line, rhymes=number in rhyming),))
        for number, (label, line) in enumerate(zip(labels, lines, strict=True))
    ]
    return Structure(tuple(parts), "春天")


def by_measure(rows) -> dict[str, float]:
    return {row.measure: row.value for row in rows}


def test_equal_passes_agree_wholly() -> None:
    whole = song("verse1", "verse1", "chorus1", "chorus1")
    found = by_measure(consistency.structure_agreement([(whole, whole)] * 3))
    assert found == dict.fromkeys(found, 1.0)
    assert list(found) == [
        "congruent", "equal_lines", "boundary_f_measure", "segment_ari", "section_kappa", "rhyme_kappa",
    ]  # fmt: skip


def test_passes_that_differ_by_hand() -> None:
    first = song("verse1", "verse1", "chorus1", "chorus1")
    second = song("verse1", "chorus1", "chorus1", "chorus1", rhyming=(3,))
    found = by_measure(consistency.structure_agreement([(first, second)]))
    assert found["congruent"] == 0
    assert found["equal_lines"] == 3 / 4
    assert found["boundary_f_measure"] == 0  # one line apart
    # verse, verse, chorus, chorus against verse, chorus, chorus, chorus: 3 of 4 equal, by chance .5 * .25 + .5 * .75
    assert found["section_kappa"] == pytest.approx((3 / 4 - 1 / 2) / (1 / 2))
    assert found["rhyme_kappa"] == pytest.approx((3 / 4 - 1 / 2) / (1 / 2))


def test_sections_of_one_kind_are_repetitions_and_their_boundaries_count() -> None:
    first = song("verse1", "verse1", "verse2", "verse2")
    second = song("verse1", "verse1", "verse1", "verse1")
    found = by_measure(consistency.structure_agreement([(first, second)]))
    assert (found["segment_ari"], found["boundary_f_measure"]) == (1.0, 0.0)


def test_lines_of_one_side_play_no_part_in_boundaries() -> None:
    first = song("verse1", "verse1", "chorus1", "chorus1")
    second = song("verse1", "chorus1", "chorus1", lines=LINES[1:], rhyming=(0, 2))
    found = by_measure(consistency.structure_agreement([(first, second)]))
    assert found["equal_lines"] == 3 / 4
    assert (found["boundary_f_measure"], found["section_kappa"], found["rhyme_kappa"]) == (1.0, 1.0, 1.0)


def test_songs_without_boundaries_and_without_shared_lines_are_left_out() -> None:
    flat = song("verse1", "verse1", "verse1", "verse1")
    other = song("verse1", lines=("海上生明月",), rhyming=())
    found = consistency.structure_agreement([(flat, flat), (flat, other)])
    values = by_measure(found)
    assert math.isnan(values["boundary_f_measure"])
    assert values["segment_ari"] == 1.0
    assert math.isnan(values["section_kappa"])  # one kind throughout says nothing
    assert values["equal_lines"] == 0.5
    # boundaries are of no song
    assert {row.n for row in found if row.measure != "boundary_f_measure"} == {2}
    assert [row.n for row in found if row.measure == "boundary_f_measure"] == [0]


@pytest.mark.slow
@given(st.lists(st.lists(st.sampled_from(["verse1", "chorus1", "bridge1"]), min_size=4, max_size=4), min_size=2))
def test_the_order_of_passes_and_songs_plays_no_part(labels: list[list[str]]) -> None:
    songs = [song(*row) for row in labels]
    pairs = list(itertools.pairwise(songs))
    there = by_measure(consistency.structure_agreement(pairs))
    back = by_measure(consistency.structure_agreement([(second, first) for first, second in reversed(pairs)]))
    assert there == pytest.approx(back, nan_ok=True)
    assert all(math.isnan(value) or -1 <= value <= 1 for value in there.values())


def test_an_interval_holds_the_figure_and_narrows_with_songs() -> None:
    rng = np.random.default_rng(3)

    def width(n: int) -> float:
        pairs = []
        for _ in range(n):
            labels = rng.choice(["verse1", "chorus1"], 4)
            other = [str(label) if rng.random() < 0.8 else "bridge1" for label in labels]
            pairs.append((song(*map(str, labels)), song(*other)))
        row = next(one for one in consistency.structure_agreement(pairs) if one.measure == "section_kappa")
        assert row.low < row.value < row.high <= 1
        return row.high - row.low

    assert width(200) < width(12) / 2


def tagged(*tags: str, group: str = "amateur", live: bool = False) -> Description:
    names = [name for name in DIMENSIONS[group] if name != "audio_effects"]
    return Description(group, "字" * 60, {name: Tagged(tags) for name in names}, Effects(clear=True, live=live))


class Axes:
    """Each text is its own axis, so that a similarity counts equal tags."""

    name, revision = "axes", ""

    def encode(self, texts):
        return np.eye(len(texts), dtype=np.float32)


def test_tags_of_people_who_heard_the_same() -> None:
    songs = [[tagged("悲伤", "慢"), tagged("悲伤")], [tagged("欢快"), tagged("欢快")], [tagged("独自一人")]]
    found = consistency.tag_agreement(songs, Axes())
    first = {row.measure: row for row in found if row.row == "song_purpose"}
    assert first["tag_alpha"].n == 2
    # a pair 2/3 apart by masi, twice, among 4 * 3 pairs of ratings, of which 2 are 2/3 and 8 are 1 apart
    assert first["tag_alpha"].value == pytest.approx(1 - (2 * 2 / 3) * 3 / (2 * 2 / 3 + 8))
    assert first["tag_similarity"].value == pytest.approx((0.5 + 1) / 2)
    assert first["tag_similarity_unrelated"].value == 0
    sound = next(row for row in found if row.row == "audio_effects" and row.measure == "tag_alpha")
    assert math.isnan(sound.value)  # all said the same of everything
    assert consistency.tag_agreement([[tagged("独")]]) == []


def test_similarity_of_tags_is_that_of_descriptions() -> None:
    sets = [("悲伤", "缓慢的"), ("悲伤的", "慢"), ("忧伤",)]
    found = consistency.tag_agreement([[tagged(*tags) for tags in sets], [tagged("欢快"), tagged("快")]], _letters())
    by_pairs = np.mean([tag_semantic_similarity(sets[a], sets[b], encoder=_letters()).value
                        for a, b in ((0, 1), (0, 2), (1, 2))])  # fmt: skip
    other = tag_semantic_similarity(["欢快"], ["快"], encoder=_letters()).value
    row = next(row for row in found if row.measure == "tag_similarity")
    assert row.value == pytest.approx((by_pairs + other) / 2, abs=1e-6)


def _letters():
    from music_evals.pipelines.descriptions import resolve_encoder

    return resolve_encoder("char-ngrams")


def sheet(task: int, who: int, **points: float) -> ScoreSheet:
    form = assurance.FORMS["amateur"]
    return ScoreSheet(task, who, {key: points.get(key[0], float(most)) for key, most in form.items()})


def test_inspectors_of_a_round() -> None:
    sheets = [
        sheet(1, 7), sheet(1, 8), sheet(2, 7, overall_text=0), sheet(2, 8, overall_text=1), sheet(3, 7),
    ]  # fmt: skip
    found = {row.row: row for row in consistency.scoring_agreement(sheets, "amateur", 2)}
    assert found[""].group == "amateur, 2"
    assert found[""].n == 2
    # 100, 100 and 92, 94: mean squares of 2 within items, 34 over all
    assert found[""].value == pytest.approx(1 - 2 / 34)
    assert math.isnan(found["song_purpose"].value)  # all gave the same
    assert set(found) == {"", *(row for row, _ in assurance.FORMS["amateur"])}
    assert consistency.scoring_agreement(sheets[-1:], "amateur", 1) == []


def test_second_verification() -> None:
    found = by_measure(consistency.verification_agreement([(70, 72), (50, 58), (61, 59), (40, 40)]))
    assert found["points_added"] == 2
    assert found["pass_kappa"] == pytest.approx(0.5)
    assert consistency.verification_agreement([]) == []


def values_by_week(person: int, values: list[float]) -> list[Measurement]:
    return [
        Measurement(person, "inspector", "given_points", START + dt.timedelta(days=7 * week, hours=3), value)
        for week, value in enumerate(values)
    ]


def test_who_becomes_stricter_drifts_down() -> None:
    judged = [*values_by_week(2, [80, 76, 72, 68, 64]), *values_by_week(3, [70, 70, 70, 70, 70])]
    weeks = consistency.weeks_of(judged)
    assert [(week.monday, week.mean, week.others) for week in weeks[:2]] == [
        (START.date(), 80, 70), (START.date() + dt.timedelta(days=7), 76, 70),
    ]  # fmt: skip
    first, second = consistency.drift_of(weeks)
    assert (first.person, first.weeks, first.slope, first.to_others) == (2, 5, -4, -4)
    assert (second.slope, second.to_others) == (0, 4)
    assert first.low <= first.slope <= first.high


def test_few_weeks_have_no_slope() -> None:
    weeks = consistency.weeks_of(values_by_week(2, [80, 70, 60]))
    assert math.isnan(weeks[0].others)
    (found,) = consistency.drift_of(weeks)
    assert math.isnan(found.slope)
    assert math.isnan(found.to_others)


# a study


@pytest.fixture
def worked(bench: StudyBench) -> StudyBench:
    """A study with two songs done twice, one differently, and a training song that two amateurs described."""
    bench.songs("s1", "s2", "s3")
    assert training.choose_songs(bench.service, bench.ADMIN, 1) == 1
    for other, who in enumerate((bench.PRO, bench.OTHER_PRO)):
        for number in range(2):
            task = bench.take(who)
            label = "chorus1" if other and number else "verse1"
            annotating.submit(
                bench.service, who, task.id, bench.version(TaskRow, task.id),
                one_verse("春眠不觉晓", "处处闻啼鸟", label=label),
            )  # fmt: skip
        bench.clock.wait(days=3)
    for who in (bench.FAN, bench.OTHER_FAN):
        task = training.take_training(bench.service, who)
        assert task is not None
        annotating.open_task(bench.service, who, task.id)
        bench.listen(who, task.id)
        annotating.submit(bench.service, who, task.id, bench.version(TaskRow, task.id), description("amateur"))
        for inspector, share in ((bench.INSPECTOR, 1.0), (bench.OTHER_INSPECTOR, 0.5)):
            points = {key: most * share for key, most in assurance.FORMS["amateur"].items()}
            training.score_item(bench.service, ScoreSheet(task.id, inspector, points))
    return bench


def test_the_report_of_a_study(worked: StudyBench) -> None:
    found = study_agreement(worked.service, worked.ADMIN)
    assert by_measure(found.structure)["congruent"] == 0.5
    assert {(row.group, row.measure) for row in found.tags} == {("amateur", "tag_alpha")}
    assert {(row.group, row.n) for row in found.inspectors} == {("amateur, 1", 2)}
    # of the song whose passes are equal; nothing else is settled or scored
    assert {(week.person, week.measure, week.mean, week.others) for week in found.weeks} == {
        (who, "structure_accuracy", 1.0, 1.0) for who in (worked.PRO, worked.OTHER_PRO)
    }
    assert [drift.weeks for drift in found.drift] == [1, 1]


def test_scores_of_assurance_are_of_two_people(worked: StudyBench) -> None:
    with worked.store.writing() as session:
        row = session.query(TaskRow).filter_by(training=True, person=worked.FAN).one()
        row.training = False
        points = [[*key, most] for key, most in assurance.FORMS["amateur"].items()]
        session.add(
            SheetRow(task=row.id, inspector=worked.INSPECTOR, points=points, total=100.0, moment=worked.clock())
        )
    oversight.verify(worked.service, ScoreSheet(row.id, worked.ADMIN, dict.fromkeys(assurance.FORMS["amateur"], 0)))
    found = study_agreement(worked.service, worked.ADMIN)
    scored = {(week.person, week.measure, week.mean) for week in found.weeks if week.measure != "structure_accuracy"}
    assert scored == {
        (worked.FAN, "description_points", 100.0), (worked.INSPECTOR, "given_points", 100.0),
    }  # fmt: skip
    assert by_measure(found.inspectors)["points_added"] == -100


def test_what_was_discarded_is_not_in_it(worked: StudyBench) -> None:
    with worked.store.writing() as session:
        for row in session.query(TaskRow).filter_by(training=False):
            row.state = "discarded"
    found = study_agreement(worked.service, worked.ADMIN)
    assert (found.structure, found.weeks, found.drift) == ([], [], [])
    assert found.tags


def test_who_withdrew_is_not_in_it(worked: StudyBench) -> None:
    managing.withdraw(worked.service, worked.ADMIN, worked.OTHER_PRO)
    managing.withdraw(worked.service, worked.ADMIN, worked.OTHER_FAN)
    found = study_agreement(worked.service, worked.ADMIN)
    assert (found.structure, found.tags) == ([], [])
    assert {row.n for row in found.inspectors} == {1}


def test_it_is_for_administrators(worked: StudyBench) -> None:
    with pytest.raises(ForbiddenError):
        study_agreement(worked.service, worked.INSPECTOR)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_files_of_the_report(worked: StudyBench, tmp_path, language: str) -> None:
    found = study_agreement(worked.service, worked.ADMIN)
    written = write_report(found, tmp_path / "out", language=language)
    assert [path.name for path in written] == [
        "agreement.html", "structure.csv", "tags.csv", "inspectors.csv", "weeks.csv", "drift.csv",
    ]  # fmt: skip
    page = written[0].read_text(encoding="utf-8")
    assert {"zh": "一致性", "en": "Agreement"}[language] in page
    assert "0.500" in page
    with written[1].open(encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table))
    assert rows[0]["measure"] == "congruent"
    assert float(rows[0]["value"]) == 0.5
    assert next(row for row in rows if row["measure"] == "boundary_f_measure")["value"] == ""
    with pytest.raises(UnknownNameError):
        write_report(found, tmp_path, language="fr")
