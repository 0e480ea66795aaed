"""Who is left out: the cheats of a review are marked, honest listeners are not; rules that say little are not used."""

from __future__ import annotations

import csv
import json
import math
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from tests.listeners import QUALITY, attend, claimed_sec, sent, submit

from music_evals.studies.folders import Introduction, StudyFolder, read_study_folder
from music_evals.studies.listening.analysis import evaluate_listening
from music_evals.studies.listening.answers import ListeningKey, ListeningTables
from music_evals.studies.listening.build import build_listening_test, read_listening_key
from music_evals.studies.listening.results import read_listening_results
from music_evals.studies.listening.screening import rule_texts, screen_listeners
from music_evals.studies.listening.settings import ListeningSettings, named_questions
from music_evals.studies.storage import SlotBook
from music_evals.ui.studies.server import build_app

PAGE = {"index.html": b'<script type="application/json" id="study"></script>'}
TOLD = Introduction(title="T", consent=("Yes.",), instructions=("Go.",))
N_ITEMS = 8
Row = dict[str, Any]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight items of two systems and their originals."""
    folder, rng = tmp_path_factory.mktemp("sounds"), np.random.default_rng(3)
    rows = [["item_id", "system", "reference", "estimate"]]
    for item in range(N_ITEMS):
        for name in ("r", "x", "y"):
            soundfile.write(folder / f"{name}{item}.wav", 0.1 * rng.normal(size=8820), 8820)
        rows += [[f"i{item}", system, f"r{item}.wav", f"{system}{item}.wav"] for system in "xy"]
    with (folder / "pairs.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return folder / "pairs.csv"


@pytest.fixture(scope="module")
def built(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return the folder of a test with some settings, which nobody has answered; each is built once."""
    made: dict[str, Path] = {}

    def make(**settings: Any) -> Path:
        if (name := repr(settings)) not in made:
            made[name] = tmp_path_factory.mktemp("built") / "study"
            chosen = ListeningSettings(**{"listeners": 16, "seed": 7, **settings})
            build_listening_test(table, made[name], chosen, study="ours", introduction=TOLD, page=PAGE)
        return made[name]

    return make


@pytest.fixture
def build(built: Callable[..., Path], tmp_path: Path) -> Callable[..., tuple[StudyFolder, ListeningKey]]:
    def make(**settings: Any) -> tuple[StudyFolder, ListeningKey]:
        study = read_study_folder(shutil.copytree(built(**settings), tmp_path / "study"))
        return study, read_listening_key(study.key)

    return make


def changed(
    content: Row, study: StudyFolder, change: Callable[[Mapping[str, Any], str, dict[str, int]], dict[str, int]]
) -> Row:
    """Answers with other values on all pages but the attention checks."""
    for trial, row in zip(study.plans[content["slot"]]["trials"], content["trials"], strict=True):
        if trial["type"] != "check":
            row["answers"] = {name: change(trial, name, values) for name, values in row["answers"].items()}
    return content


def honest(study: StudyFolder, key: ListeningKey, rng: np.random.Generator) -> Callable[[int], Row]:
    """Who rates as `QUALITY` says, with a spread of a third of a step."""

    def answer(trial: Mapping[str, Any], _: str, values: dict[str, int]) -> dict[str, int]:
        systems = {file: key.pairs[file.rpartition("/")[2]].system for file in values}
        if trial["type"] == "ab":
            best = max(values, key=lambda file: QUALITY[systems[file]] + rng.normal(0, 1))
            return {file: int(file == best) for file in values}
        step = 20 if trial["type"] == "mushra" else 1
        least, most = (0, 100) if trial["type"] == "mushra" else (1, 5)
        sure = {"reference", "anchor"} if trial["type"] == "mushra" else set()
        return {
            file: values[file] if systems[file] in sure
            else int(np.clip(round(step * (QUALITY[systems[file]] + rng.normal(0, 0.7))), least, most))
            for file in values
        }  # fmt: skip

    return lambda slot: changed(sent(study.plans, key, slot), study, answer)


def marks(study: StudyFolder) -> dict[str, str]:
    results = read_listening_results(study.folder, strict=True)
    rows, _ = screen_listeners(results.tables, results.key.settings)
    assert [row["is_kept"] for row in rows] == [not row["marks"] for row in rows]
    return {row["listener"]: row["marks"] for row in rows}


def forged(study: StudyFolder, key: ListeningKey, how: str, rng: np.random.Generator) -> Callable[[int], Row]:
    """The cheats of the review; each counts the tones right."""

    def answer(trial: Mapping[str, Any], _: str, values: dict[str, int]) -> dict[str, int]:
        if how == "all five":
            return dict.fromkeys(values, 5)
        if how == "random":
            return {file: int(rng.integers(1, 6)) for file in values}
        return {file: 6 - value for file, value in values.items()}

    return lambda slot: changed(sent(study.plans, key, slot), study, answer)


@pytest.mark.slow
def test_the_eight_listeners_of_the_review_are_marked_by_the_time_that_passed(build: Any) -> None:
    """They post all answers as soon as they joined, and claim minutes."""
    pytest.importorskip("httpx2")
    from starlette.testclient import TestClient

    study, key = build()
    rng = np.random.default_rng(0)
    page = {"Content-Type": "application/json", "X-Study-Page": "1"}
    cheats = []
    with TestClient(build_app(study, secret="a secret of sixteen")) as client:  # noqa: S106
        for number in range(8):
            how = ("all five", "random", "inverted", "as the others")[number % 4]
            me = client.post("/api/join", headers=page, content=json.dumps({"study": "ours"})).json()
            answers = (honest if how == "as the others" else lambda *a, how=how: forged(*a[:2], how, a[2]))(
                study, key, rng
            )
            part = {"format": 1, "study": "ours", "kind": "listening", "slot": me["slot"], "sent": 0, "part": "answers",
                    "content": answers(me["slot"])}  # fmt: skip
            for trial in part["content"]["trials"]:
                trial["seconds"] += 20
            said = client.post("/api/submit", headers={**page, "X-Participant": me["token"]}, content=json.dumps(part))
            assert said.status_code == 200, said.text  # kept, and marked: nothing is dropped in silence
            cheats.append(me["token"])
    kept = [attend(study, honest(study, key, rng), 600) for _ in range(8)]
    found = marks(study)
    assert all(found[token].startswith("faster_than_time") for token in cheats)
    assert [found[token] for token in kept] == [""] * 8
    results = read_listening_results(study.folder)
    tables = evaluate_listening(results.tables, results.key.settings)
    alpha = {row["listeners"]: row["alpha"] for row in tables["agreement"]}
    assert alpha["kept"] > alpha["all"] + 0.2
    rows = {row["listener"]: row for row in tables["listeners"]}
    assert all(rows[token]["server_sec"] < 60 < rows[token]["seconds"] for token in cheats)
    assert all(rows[token]["server_sec"] == pytest.approx(600) for token in kept)


def test_who_takes_the_time_is_marked_by_what_is_answered(build: Any) -> None:
    study, key = build()
    rng = np.random.default_rng(1)
    kept = [attend(study, honest(study, key, rng), 900) for _ in range(10)]
    all_five, random, inverted = (
        [attend(study, forged(study, key, how, rng), 900) for _ in range(2)]
        for how in ("all five", "random", "inverted")
    )
    found = marks(study)
    assert [found[token] for token in kept] == [""] * 10
    assert "no_variance" in found[all_five[0]]
    assert all("low_agreement" in found[token] for token in random + inverted)
    results = read_listening_results(study.folder)
    rows = {row["listener"]: row for row in screen_listeners(results.tables, results.key.settings)[0]}
    assert all(rows[token]["agreement"] < -0.5 for token in inverted)
    assert all(rows[token]["agreement"] == rows[token]["agreement LQ1"] > 0.3 for token in kept)
    assert all(rows[token]["spread"] == 0 and math.isnan(rows[token]["agreement"]) for token in all_five)


@pytest.mark.parametrize("late", [0.0, 3600.0, 3e6])
def test_slow_lines_pauses_and_late_parts_are_honest(build: Any, late: float) -> None:
    study, key = build()
    answers = sent(study.plans, key, 0)
    token = attend(study, lambda _: answers, claimed_sec(answers) + late)
    assert marks(study)[token] == ""


def test_without_a_servers_clock_time_says_nothing(build: Any) -> None:
    study, key = build()
    file = submit(study, sent(study.plans, key, 0), 0)  # as a store of an earlier version: nobody joined
    back = attend(study, lambda slot: sent(study.plans, key, slot), -50)
    assert set(marks(study)) == {file, back}
    assert "faster_than_time" not in "".join(marks(study).values())
    results = read_listening_results(study.folder)
    assert all(math.isnan(row["server_sec"]) for row in results.tables.listeners)


def test_choices_by_side_are_no_choices(build: Any) -> None:
    study, key = build(type="ab", with_hidden_reference=True)
    rng = np.random.default_rng(2)
    kept = [attend(study, honest(study, key, rng), 900) for _ in range(9)]

    def by_side(in_turn: bool) -> Callable[[int], Row]:
        count = iter(range(1000))

        def answer(trial: Mapping[str, Any], _: str, __: dict[str, int]) -> dict[str, int]:
            first, second = trial["stimuli"]
            left = int(next(count) % 2 == 0 or not in_turn)
            return {first: left, second: 1 - left}

        return lambda slot: changed(sent(study.plans, key, slot), study, answer)

    def inverted(_: Any, __: str, values: dict[str, int]) -> dict[str, int]:
        return {file: 1 - value for file, value in values.items()}

    first, turns = (attend(study, by_side(in_turn), 900) for in_turn in (False, True))
    upside = attend(study, lambda slot: changed(sent(study.plans, key, slot), study, inverted), 900)
    found = marks(study)
    assert [found[token] for token in kept] == [""] * 9
    assert all(found[token].startswith("no_variance") for token in (first, turns))
    assert found[upside] == "low_agreement"


@pytest.mark.parametrize("kind", ["rating", "mushra"])
def test_answers_of_another_are_marked_at_who_sent_later(build: Any, kind: str) -> None:
    study, key = build(type=kind, checks=0)
    rng = np.random.default_rng(4)
    kept = [attend(study, honest(study, key, rng), 900, at=1e6 + number) for number in range(9)]
    first = read_listening_results(study.folder).tables.ratings
    theirs = {(row["item"], row["system"]): row["rating"] for row in first if row["listener"] == kept[3]}

    def copied(_: Any, __: str, values: dict[str, int]) -> dict[str, int]:
        pairs = {file: key.pairs[file.rpartition("/")[2]] for file in values}
        return {file: theirs[pair.item_id, pair.system] for file, pair in pairs.items()}

    copy = attend(study, lambda slot: changed(sent(study.plans, key, slot), study, copied), 900, at=2e6)
    found = marks(study)
    assert found.pop(copy) == "same_answers"
    assert set(found.values()) == {""}


def test_mushra_by_hand() -> None:
    """Fifteen per cent of twenty items is three; 3 of 20 is not more than that, and 4 of 20 is."""
    said = {
        "a": ([89] * 3 + [90] * 17, [91] * 3 + [90] * 17),
        "b": ([89] * 4 + [100] * 16, [20] * 20),
        "c": ([100] * 20, [91] * 4 + [20] * 16),
    }
    ratings = [
        {"item": f"i{item}", "system": system, "listener": who, "question": "overall", "order_index": item,
         "rating": value}
        for who, scores in said.items()
        for system, values in zip(("reference", "anchor"), scores, strict=True)
        for item, value in enumerate(values)
    ]  # fmt: skip
    listeners = [{"listener": who, "seconds": 60.0, "server_sec": math.nan, "n_failed": 0} for who in said]
    rows, note = screen_listeners(ListeningTables(ratings, [], [], [], listeners), ListeningSettings(type="mushra"))
    assert [(row["low_references"], row["high_anchors"], row["marks"]) for row in rows] == [
        (0.15, 0.15, ""), (0.2, 0.0, "low_reference"), (0.0, 0.2, "high_anchor"),
    ]  # fmt: skip
    assert note.startswith("low_agreement was not applied: 0 listeners")


@pytest.mark.parametrize(("kind", "least"), [("rating", 3), ("ab", 0)])
def test_a_hidden_original_that_is_said_not_to_be_kept(build: Any, kind: str, least: int) -> None:
    study, key = build(type=kind, questions=named_questions(kind, ["melody"]), with_hidden_reference=True, checks=0)

    def lowered(_: Any, __: str, values: dict[str, int]) -> dict[str, int]:
        hidden = [file for file in values if key.pairs[file.rpartition("/")[2]].system == "reference"]
        if kind == "ab":
            return {file: int(file not in hidden) for file in values} if hidden else values
        return {**values, **dict.fromkeys(hidden, least)}

    kept = attend(study, lambda slot: sent(study.plans, key, slot), 900)
    deaf = attend(study, lambda slot: changed(sent(study.plans, key, slot), study, lowered), 900, at=2e6)
    found = marks(study)
    assert (found[kept], found[deaf]) == ("", "low_reference")


def test_with_few_listeners_or_answers_agreement_is_not_used_and_that_is_said(build: Any) -> None:
    study, key = build()
    rng = np.random.default_rng(5)
    for _ in range(4):
        attend(study, honest(study, key, rng), 900)
    token = attend(study, forged(study, key, "inverted", rng), 900)
    assert marks(study)[token] == ""
    results = read_listening_results(study.folder)
    warnings = evaluate_listening(results.tables, results.key.settings)["warnings"]
    assert any(line.startswith("low_agreement was not applied: 5 listeners compared") for line in warnings)


def test_without_the_rule_on_agreement_nobody_is_left_out_by_it(build: Any) -> None:
    study, key = build(least_agreement=0.0)
    rng = np.random.default_rng(8)
    for _ in range(9):
        attend(study, honest(study, key, rng), 900)
    upside = attend(study, forged(study, key, "inverted", rng), 900)
    assert marks(study)[upside] == ""
    results = read_listening_results(study.folder)
    assert screen_listeners(results.tables, key.settings)[1] == ""


def test_most_of_them_guessing_throws_nobody_out(build: Any) -> None:
    study, key = build()
    rng = np.random.default_rng(6)
    for number in range(12):
        attend(study, (forged(study, key, "random", rng) if number else honest(study, key, rng)), 900)
    assert "low_agreement" not in "".join(marks(study).values())


@pytest.mark.slow
def test_the_rules_stand_in_the_study_before_anybody_answers(build: Any) -> None:
    study, key = build(type="mushra", allowed_failures=0, least_agreement=0.0)
    stored = json.loads((study.key / "test.json").read_text())["settings"]
    assert (stored["allowed_failures"], stored["least_agreement"]) == (0, 0.0)
    assert set(rule_texts(key.settings)) == {
        "faster_than_time", "failed_checks", "no_variance", "same_answers", "low_reference", "high_anchor",
    }  # fmt: skip
    assert "low_agreement" in rule_texts(ListeningSettings())
    # a test that an earlier version built states none, and has those of today
    del stored["allowed_failures"], stored["least_agreement"], stored["lengths"]
    assert ListeningSettings.from_dict(stored).allowed_failures == 1


def test_one_invitation_is_one_listener_and_an_open_study_says_that_it_is_open(build: Any) -> None:
    study, key = build()
    (code,) = SlotBook(study.submissions, 16).invite(1)
    attend(study, lambda slot: sent(study.plans, key, slot), 900, code=code)
    assert read_listening_results(study.folder).is_by_invitation
    submit(study, sent(study.plans, key, 3), 3)
    assert not read_listening_results(study.folder).is_by_invitation
