"""A task is added by one folder, one pipeline, one verb and a block in the catalogue; nothing else is touched."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import music_evals
from music_evals.benchmark import tasks
from music_evals.benchmark.load import load_results
from music_evals.cli.console import EXIT_FAILURES
from music_evals.cli.options import in_options
from music_evals.errors import InvalidInputError, UnknownNameError

FOLDER = '''
"""Toy: how near numbers are to those that were asked for."""

TASKS = {"toy": "task:TOY"}
'''

TASK = '''
from __future__ import annotations

import dataclasses
import os
from pathlib import Path

from music_evals.benchmark.inputs import json_lines
from music_evals.benchmark.report import score_page
from music_evals.benchmark.rows import PairJob
from music_evals.benchmark.run import Settings as RunSettings
from music_evals.benchmark.run import RECORDS, record
from music_evals.benchmark.task import Task
from music_evals.errors import InvalidInputError, NotComparableError
from music_evals.metrics.catalogue import Metric
from music_evals.options import option

CATALOGUE = {"nearness": Metric("nearness", "Nearness", "toy", 0.0, 1.0, "higher")}


def nearness(reference, estimate, *, scale):
    """The pipeline."""
    if estimate < 0:
        raise NotComparableError("a number below zero is near to nothing")
    return max(0.0, 1 - abs(reference - estimate) / scale)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(RunSettings):
    numbers: str | os.PathLike[str] | None = option(None, "a file of JSON lines", group="data", metavar="FILE")
    scale: float = 10.0

    def __post_init__(self):
        if self.numbers is None:
            raise InvalidInputError("give `numbers`, a file of JSON lines")
        super().__post_init__()


@dataclasses.dataclass(frozen=True)
class Side:
    value: float

    @property
    def name(self):
        return str(self.value)

    content = name


@dataclasses.dataclass(frozen=True)
class Pair:
    item: str
    system: str
    reference: Side
    estimate: Side
    modality: str = "numbers"
    treatment: str = ""

    @property
    def group(self):
        return self.item


@dataclasses.dataclass(frozen=True)
class Numbers:
    systems: tuple[str, ...]
    pairs: tuple[Pair, ...]
    failures: tuple = ()


@dataclasses.dataclass(frozen=True)
class Judge:
    scale: float

    def __call__(self, pair):
        value = nearness(pair.reference.value, pair.estimate.value, scale=self.scale)
        return {"scores": {"nearness": {"value": value}}, "notes": []}


class Toy(Task):
    """How near numbers are to those that were asked for."""

    name = "toy"
    settings = Settings
    title = "How near numbers are"
    scales = CATALOGUE
    packages = ("music_evals",)
    items = "numbers"

    def run(self, settings, *, progress=None):
        rows = [row for _, row in json_lines(Path(settings.numbers))][: settings.limit]
        pairs = [Pair(row["id"], row["system"], Side(row["wanted"]), Side(row["found"])) for row in rows]
        dataset = {"id": Path(settings.numbers).name, "config": None, "split": None, "revision": None}
        header = self.header(dataset, "corrected", CATALOGUE, options={"scale": settings.scale})
        judged = Numbers(tuple(dict.fromkeys(pair.system for pair in pairs)), tuple(pairs))
        job = PairJob(header, judged, (), tuple(CATALOGUE), "corrected", Judge(settings.scale), at_once=2)
        rows = record(job, Path(settings.out) / RECORDS, settings, progress=progress)
        return self.write(rows, settings, lambda results, scores: score_page(
            results, scores, {"scale": settings.scale}
        ))

    def describe_run(self, header):
        return f"scale {header['options']['scale']}"


TOY = Toy()
'''

VERB = """
from music_evals.benchmark.tasks.toy.task import TOY, Settings
from music_evals.cli.console import Bar, finish_scores
from music_evals.cli.options import add_options, add_output_options, add_verb, from_options


def add(verbs):
    verb = add_verb(verbs, "toy", run, "score numbers")
    where = add_options(verb, Settings)["output"]
    add_output_options(where, published="")


def run(options):
    with Bar("number") as bar:
        outcome = TOY.run(from_options(options, Settings), progress=bar)
    return finish_scores(outcome, options)
"""

NUMBERS = [
    {"id": f"n{number}", "system": system, "wanted": 5.0, "found": found}
    for system, distance in (("near", 1.0), ("far", 4.0))
    for number, found in enumerate((5 + distance, 5 - distance, 5.0, -1.0 if system == "far" else 5.0))
]


@pytest.fixture
def numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that is judged, once the task is added."""
    folder = tmp_path / "rooms" / "toy"
    folder.mkdir(parents=True)
    for name, text in {"__init__": FOLDER, "task": TASK, "verb": VERB}.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.setattr(tasks, "__path__", [*tasks.__path__, str(tmp_path / "rooms")])
    (tmp_path / "sitecustomize.py").write_text(  # the processes of an engine find the folder too
        f"from music_evals.benchmark import tasks\ntasks.__path__.append({str(tmp_path / 'rooms')!r})\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    path = tmp_path / "numbers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in NUMBERS))
    yield path
    for name in [name for name in sys.modules if name.startswith("music_evals.benchmark.tasks.toy")]:
        del sys.modules[name]
    if hasattr(tasks, "toy"):
        del tasks.toy


@pytest.mark.slow
def test_a_task_of_one_folder_runs_and_resumes(numbers: Path, tmp_path: Path, read_page: Any) -> None:
    calls: list[tuple[int, int]] = []
    how: dict[str, Any] = {"numbers": numbers, "n_resamples": 50}
    outcome = music_evals.run("toy", tmp_path / "out", **how, progress=lambda *call: calls.append(call[:2]))
    scores = {system: found["nearness"] for system, found in outcome.results["scores"].items()}
    assert scores["near"]["value"] == pytest.approx((0.9 + 0.9 + 1 + 1) / 4)
    assert (scores["far"]["value"], scores["far"]["n_failed"]) == (pytest.approx((0.6 + 0.6 + 1) / 3), 1)
    assert [row["error"] for row in outcome.results["failures"]] == [
        "NotComparableError: a number below zero is near to nothing"
    ]
    assert calls == [(2, 8), (4, 8), (6, 8), (8, 8)]
    assert "Nearness" in outcome.files["table"].read_text()
    page = read_page(outcome.files["report"].read_text())
    assert "How near numbers are" in "".join(page.text)
    # what succeeded is not judged again; results are those of the first time
    calls.clear()
    again = music_evals.run("toy", tmp_path / "out", **how, progress=lambda *call: calls.append(call[:2]))
    assert calls == [(8, 8)]
    assert again.results == outcome.results
    spread = music_evals.run("toy", tmp_path / "spread", **how, workers=2)
    assert spread.results == outcome.results
    assert load_results(tmp_path / "out").results["scores"] == outcome.results["scores"]


def test_its_settings_are_checked_like_all_others(numbers: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="`n_resamples` must be at least 1, got 0"):
        music_evals.run("toy", tmp_path, numbers=numbers, n_resamples=0)
    with pytest.raises(UnknownNameError, match="unknown setting of toy 'scales'; did you mean scale"):
        music_evals.run("toy", tmp_path, numbers=numbers, scales=3)
    with pytest.raises(UnknownNameError, match="unknown task 'toyy'; did you mean toy"):
        music_evals.run("toyy", tmp_path)


def test_its_verb_is_a_parser_and_a_function(numbers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import music_evals.benchmark.tasks.toy.verb as toy  # type: ignore[import-not-found]

    parser = argparse.ArgumentParser()
    toy.add(parser.add_subparsers())
    given = ["toy", "--numbers", str(numbers), "--out", str(tmp_path / "out"), "--resamples", "20"]
    options = parser.parse_args(given)
    assert options.command(options) == EXIT_FAILURES  # a number failed
    shown = capsys.readouterr()
    assert "n3 (far): NotComparableError" in shown.err
    assert "Nearness" in shown.out
    options = parser.parse_args([*given[:-1], "0"])
    with pytest.raises(InvalidInputError) as caught:
        options.command(options)
    assert in_options(str(caught.value), options.verb) == "--resamples must be at least 1, got 0"
