"""A listening test that was held: answers from the store and from files, and its table beside those of editors."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
from tests.listeners import sent, submit

from music_evals.errors import InvalidInputError, MusicEvalsError, NoDataError
from music_evals.pipelines.editing_test import evaluate_editing_test
from music_evals.pipelines.study_tables import rows_of, study_tables
from music_evals.studies.editing.simulation import StudyDesign, simulate_study
from music_evals.studies.folders import Introduction, StudyFolder
from music_evals.studies.listening.build import build_listening_test, read_listening_key
from music_evals.studies.listening.results import read_listening_results
from music_evals.studies.listening.settings import ListeningSettings, named_questions, style_questions
from music_evals.studies.storage import new_token

PAGE = {"index.html": b'<script type="application/json" id="study"></script>'}
TEXTS = Introduction(title="Ours", consent=("You agree.",), instructions=("Listen.",))


@pytest.fixture
def study(tmp_path: Path, rng: np.random.Generator) -> StudyFolder:
    """A rating test of the eight samples of an editing test: two pieces in two styles by two models."""
    samples = simulate_study(StudyDesign(n_pieces=2, n_listeners=0), rng=rng).samples
    rows = [["item_id", "group", "system", "reference", "estimate", "sample_id"]]
    for place, name in enumerate(samples["sample_id"].tolist()):
        piece, style, model = (samples[column][place] for column in ("piece_id", "style", "model"))
        system = "x" if model == "proposed" else "y"
        soundfile.write(tmp_path / f"{name}.wav", 0.1 * rng.normal(size=4410), 8820)
        rows.append([f"{piece} {style}", piece, system, f"{name}.wav", f"{name}.wav", name])
    for row in rows[2::2]:  # both of a piece and style share one original
        row[3] = rows[rows.index(row) - 1][3]
    with (tmp_path / "pairs.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    questions = named_questions("rating", ["LQ1"]) + style_questions(["bach", "jazz"])
    settings = ListeningSettings(questions=questions, listeners=2, checks=1)
    built = build_listening_test(
        tmp_path / "pairs.csv", tmp_path / "study", settings, study="ours", introduction=TEXTS, page=PAGE
    )
    return built.study


def export(study: StudyFolder, slot: int, path: Path) -> Path:
    """The file that a page without a server gives its participant."""
    answers = sent(study.plans, read_listening_key(study.key), slot)
    about = {"format": 1, "study": study.study, "kind": study.kind, "slot": slot, "token": new_token()}
    path.write_text(json.dumps({**about, "parts": {"answers": answers}}))
    return path


def test_store_and_files_are_one(study: StudyFolder, tmp_path: Path) -> None:
    key = read_listening_key(study.key)
    token = submit(study, sent(study.plans, key, 0), 0)
    results = read_listening_results(study.folder, [export(study, 1, tmp_path / "sent.json")], strict=True)
    assert sorted(answers.slot for answers in results.answers) == [0, 1]
    assert (results.unfinished, results.refused) == ((), {})
    alone = read_listening_results(study.folder)
    assert [answers.listener for answers in alone.answers] == [token]


def test_the_table_stands_beside_those_of_editors(study: StudyFolder, rng: np.random.Generator, tmp_path: Path) -> None:
    held = simulate_study(StudyDesign(n_pieces=2, n_listeners=0), rng=rng)
    results = read_listening_results(study.folder, [export(study, slot, tmp_path / f"{slot}.json") for slot in (0, 1)])
    tables = study_tables(
        *(rows_of({name: column.tolist() for name, column in table.items()}, table_name="t") for table in held[:2]),
        results.tables.listening,
    )
    found = evaluate_editing_test(tables)
    assert {row["delta_LQ1"] for row in found["pairs"]} == {2.0}  # x is rated 4, and y 2
    assert {name for row in found["style_similarity"] for name in row} >= {"bach", "jazz"}


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (lambda content: content["trials"][0].update(seconds=0.0), InvalidInputError, r"row 1: .* open for 0.0 s"),
        (lambda content: content.update(slot=0), InvalidInputError, "row |plan was 1"),
    ],
)
def test_answers_that_cannot_be(
    study: StudyFolder, change: Callable[[dict[str, object]], None], error: type[MusicEvalsError], said: str
) -> None:
    content = sent(study.plans, read_listening_key(study.key), 1)
    change(content)
    token = submit(study, content, 1)
    with pytest.raises(error, match=said):
        read_listening_results(study.folder, strict=True)
    with pytest.raises(NoDataError, match="no answers that count; 0 unfinished, 1 refused"):
        read_listening_results(study.folder)
    good = submit(study, sent(study.plans, read_listening_key(study.key), 0), 0)
    results = read_listening_results(study.folder)
    assert [answers.listener for answers in results.answers] == [good]
    assert list(results.refused) == [token]


def test_another_kind_of_study_is_refused(build: Callable[..., StudyFolder]) -> None:
    with pytest.raises(InvalidInputError, match="a study of the kind editing, and no listening test"):
        read_listening_results(build().folder)
