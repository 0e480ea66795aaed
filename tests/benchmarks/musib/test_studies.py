"""Training at equal budgets: equal steps, nested subsets, and a table of runs that goes on where it stood."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from benchmarks.musib.hypotheses import Scores  # noqa: E402
from benchmarks.musib.shortening import Limits, decay_for, shares, shortened  # noqa: E402
from benchmarks.musib.studies import DONE, SCORES, SIZES, TRAINED_ON, Run, Studies, parts, runs, spread, subset  # noqa: E402
from benchmarks.musib.study_scores import in_words, shipped_decoding  # noqa: E402
from benchmarks.musib.systems import DESIGNS, ROOT  # noqa: E402

from benchmarks.musib import equal_budget  # noqa: E402 - after the check for torch
from music_evals.benchmark.tasks.inpainting.items import ItemSet  # noqa: E402
from music_evals.files import write_atomically  # noqa: E402
from music_evals.models.training.recipe import TrainingConfig, read_recipe  # noqa: E402
from music_evals.repositories import MODELS  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

TINY = {
    "anticipation_rnn": "{note_embedding_size: 4, metadata_embedding_size: 1, hidden_size: 8, linear_size: 8}",
    "inpaintnet": "{size: small, latent_size: 4, measure_size: 8, context_size: 8}",
    "vli": "{size: small, model_size: 16, n_layers: 1, n_heads: 2, inner_size: 16, embedding_size: 4}",
}
STAGES = {
    "inpaintnet": "stages:\n- {name: vae, training: {cycles: [4]}}\n- {name: latent_rnn, training: {cycles: [6]}}\n"
}
SHIPPED = {
    "jsb": {"decoding": "sample", "temperature": 0.5, "top_p": 0.9},
    "folk": {"decoding": "argmax", "temperature": 1.0, "top_p": 1.0},
}
"""Data -> how the shipped models of it decode."""
LIMITS = Limits(steps=3, batch=4, epoch_steps=1, validation=3, test=5, seeds=2)
TABLE = [
    Run("inpaintnet-jsb", "inpaintnet", "jsb"),
    Run("inpaintnet-folk", "inpaintnet", "folk"),
    Run("inpaintnet-folk-then-jsb", "inpaintnet", "jsb", start="inpaintnet-folk"),
    Run("inpaintnet-folk-171", "inpaintnet", "folk", songs=2),
]


def tunes(songs: list[str], seed: int) -> ItemSet:
    """Windows of quarter notes, three a song."""
    names = [song for song in songs for _ in range(3)]
    contexts = np.full((len(names), 384), 128, dtype=np.uint8)
    contexts[:, ::6] = np.random.default_rng(seed).integers(60, 72, (len(names), 64))
    ids = tuple(f"{song}/{row}" for row, song in enumerate(names))
    return ItemSet("tunes", None, "train", ids, tuple(names), contexts)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """Two small data sets in folders."""
    from datasets import Dataset

    found = {}
    for seed, key in enumerate(("jsb", "folk")):
        folder = tmp_path_factory.mktemp("data") / key
        folder.mkdir(parents=True)
        for split, n in (("train", 5), ("validation", 2), ("test", 3)):
            items = tunes([f"{key}-{split}-{song}" for song in range(n)], seed)
            rows = {"item_id": items.item_ids, "song": items.songs, "tokens": items.contexts.tolist()}
            Dataset.from_dict(rows).to_parquet(folder / f"{split}.parquet")
        found[key] = (str(folder), "default")
    return found


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recipes of tiny networks, and what shipped models decode by."""
    home = tmp_path_factory.mktemp("models")
    for name, sizes in TINY.items():
        folder = home / name
        folder.mkdir(parents=True)
        (folder / "train.yaml").write_text(
            f"model_type: {name}\nmodel: {sizes}\ndata: {{dataset: nowhere, config: none}}\n"
            f"training: {{cycles: [10], plain_epochs: 5, learning_rate: 0.01, threads: 1}}\n{STAGES.get(name, '')}"
        )
        for data, decoding in SHIPPED.items():
            ship(home, name, data, decoding)
    return home


def ship(home: Path, design: str, data: str, decoding: dict[str, Any]) -> None:
    folder = home / design / data
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": design, "size": "small", **decoding}))
    (folder / "model.safetensors").write_bytes(b"")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, models: Path, places: dict[str, tuple[str, str]]) -> Studies:
    """A table of which every run is done."""
    studies = Studies(tmp_path_factory.mktemp("out"), LIMITS, models, table=TABLE, places=places)
    for run in TABLE:
        studies.do(run)
    return studies


@pytest.fixture
def studies(tmp_path: Path, models: Path, places: dict[str, tuple[str, str]]) -> Studies:
    return Studies(tmp_path / "out", LIMITS, models, table=TABLE, places=places)


# --- what is run


def test_every_design_is_trained_on_both_data_sets_and_runs_start_after_those_they_need() -> None:
    table = runs()
    names = [run.name for run in table]
    assert len(set(names)) == len(names) == 18
    assert {f"{design.name}-{data}" for design in DESIGNS for data in ("jsb", "folk")} <= set(names)
    assert {f"{design.name}-folk-171" for design in DESIGNS} <= set(names)
    assert all(names.index(run.start) < place for place, run in enumerate(table) if run.start)


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_all_designs_have_equally_many_steps(design) -> None:
    limits = Limits(steps=1500)
    recipe = shortened(read_recipe(ROOT / "models" / design.name / "train.yaml"), limits)
    stages = [stage.training for stage in recipe.stages] or [recipe.training]
    contexts = sum(training.n_epochs * training.epoch_contexts for training in stages)
    assert contexts == 1500 * 32
    assert {training.batch_size for training in stages} == {32}
    assert all(training.patience >= training.n_epochs and training.max_minutes is None for training in stages)


@pytest.mark.parametrize(
    ("weights", "total", "expected"),
    [([40, 60], 30, [12, 18]), ([40, 40, 30], 30, [11, 11, 8]), ([1, 99], 5, [1, 4]), ([7], 3, [3])],
)
def test_stages_share_epochs_by_weight(weights, total, expected) -> None:
    assert shares(weights, total) == expected


def test_fewer_epochs_than_stages_are_refused() -> None:
    with pytest.raises(ValueError, match="3 stages need an epoch each, and there are 2"):
        shares([40, 40, 30], 2)


def test_teacher_forcing_decays_in_the_same_share_of_a_shorter_stage() -> None:
    """Of 3,160 steps a half is reached at 350 ln 350 = 2,050, 65 %; of 550 that is 357, and 81 ln 81 = 356."""
    assert decay_for(TrainingConfig(cycles=(40,)), 550, 350) == 82
    assert decay_for(TrainingConfig(cycles=(40,)), 3160, 350) == 350


def test_subsets_are_nested_and_hold_whole_songs() -> None:
    items = tunes([f"song {n}" for n in range(9)], seed=0)
    few, more = (subset(items, n, seed=0) for n in (3, 5))
    assert set(few.songs) < set(more.songs)
    assert (len(set(few.songs)), len(few), len(more)) == (3, 9, 15)
    rows = [items.item_ids.index(item) for item in few.item_ids]
    np.testing.assert_array_equal(few.contexts, items.contexts[rows])
    assert subset(items, None, seed=0) is items
    with pytest.raises(ValueError, match="has 9 songs in train, 171 are asked for"):
        subset(items, SIZES[0], seed=0)


def test_what_is_judged_is_spread_over_the_split() -> None:
    items = tunes([f"song {n}" for n in range(9)], seed=0)
    few = spread(items, 9)
    assert len(few) == 9
    assert len(set(few.songs)) == 9
    assert spread(items, 100).item_ids == items.item_ids


# --- the table


def test_a_table_goes_on_where_it_stood(studies: Studies, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third, _ = TABLE
    assert studies.left() == TABLE
    studies.do(first)
    written = (studies.folder(first) / "model.safetensors").stat().st_mtime_ns
    assert studies.left() == TABLE[1:]
    with pytest.raises(ValueError, match="starts from inpaintnet-folk, which is not done"):
        studies.do(third)

    # killed between training and judging: what was trained is not trained again
    from benchmarks.musib import studies as module

    with monkeypatch.context() as patch:
        patch.setattr(module, "judge", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            studies.do(second)
    assert studies.left() == TABLE[1:]
    log = studies.folder(second) / "run" / "latent_rnn" / "log.csv"
    trained = log.read_bytes()
    studies.do(second)
    assert log.read_bytes() == trained
    assert studies.left() == TABLE[2:]
    assert (studies.folder(first) / "model.safetensors").stat().st_mtime_ns == written

    # a new process reads the same, and other limits are another table
    again = Studies(studies.out, LIMITS, studies.models, table=TABLE, places=studies.places)
    assert again.done() == studies.done()
    other = Studies(
        studies.out, Limits(steps=5, batch=4, epoch_steps=1), studies.models, table=TABLE, places=studies.places
    )
    assert other.left() == TABLE


def test_a_run_is_judged_by_the_shipped_decoding(
    done: Studies, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [done.decoding(run) for run in TABLE[:2]] == [SHIPPED["jsb"], SHIPPED["folk"]]
    own = json.loads((done.folder(TABLE[0]) / SCORES).read_text())
    assert own["decoding"] == SHIPPED["jsb"]
    assert set(own["values"]) >= {"note_f1", "own_loss", "bits_a_note"}
    assert all(value > 0 for value in own["values"]["bits_a_note"])
    rows = list(equal_budget.result_rows(done))
    assert {row["run"]: row["decoding"] for row in rows} == {
        run.name: "sample, T 0.5, top p 0.9" if run.data == "jsb" else "argmax" for run in TABLE
    }

    # another decoding is shipped: what is trained is judged again, and not trained
    from benchmarks.musib import studies as module

    out, home = tmp_path / "out", tmp_path / "models"
    shutil.copytree(done.out, out)
    shutil.copytree(models, home)
    ship(home, "inpaintnet", "jsb", SHIPPED["folk"])
    again = Studies(out, LIMITS, home, table=TABLE, places=done.places)
    assert [run.data for run in again.left()] == ["jsb", "jsb"]
    monkeypatch.setattr(Studies, "_speed", lambda self, run: ([1.0] * max(len(self.recipe(run).stages), 1), 1.0))
    n_windows = len(again.items(TABLE[0], "test")) * LIMITS.seeds
    assert again.estimate(TABLE[:1])[TABLE[0].name] == pytest.approx(n_windows / 60)  # no step of a training
    judged, judge = [], module.judge
    monkeypatch.setattr(module, "fit", lambda *_, **__: pytest.fail("trained again"))
    monkeypatch.setattr(module, "judge", lambda model, *rest: (judged.append(model.decoding), judge(model, *rest))[1])
    for run in again.left():
        again.do(run)
    assert judged == ["argmax", "argmax"]
    assert again.left() == []
    assert again.done() == done.done()  # nor does it cost core-minutes of training
    assert json.loads((again.folder(TABLE[0]) / SCORES).read_text())["decoding"] == SHIPPED["folk"]


def test_scores_of_before_there_were_decodings_are_made_again(
    done: Studies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks.musib import studies as module

    shutil.copytree(done.out, tmp_path / "out")
    old = Studies(tmp_path / "out", LIMITS, done.models, table=TABLE[:1], places=done.places)
    folder = old.folder(TABLE[0])
    (folder / TRAINED_ON).unlink()
    scores = json.loads((folder / SCORES).read_text())
    write_atomically(folder / SCORES, json.dumps({key: scores[key] for key in ("items", "songs", "values")}).encode())
    assert old.left() == TABLE[:1]
    monkeypatch.setattr(module, "fit", lambda *_, **__: pytest.fail("trained again"))
    old.do(TABLE[0])
    assert json.loads((folder / SCORES).read_text()) == scores


def test_a_folder_is_named_as_before_by_what_its_weights_depend_on(done: Studies) -> None:
    run = TABLE[0]
    facts = [run._asdict(), done.recipe(run).key(), dataclasses.asdict(LIMITS), None]
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
    assert done.folder(run).name == f"inpaintnet-jsb-{digest}"


def test_a_folder_of_other_data_is_refused(done: Studies, tmp_path: Path) -> None:
    shutil.copytree(done.out, tmp_path / "out")
    places = {"jsb": done.places["folk"], "folk": done.places["jsb"]}
    other = Studies(tmp_path / "out", LIMITS, done.models, table=TABLE, places=places)
    assert other.left() == TABLE
    with pytest.raises(ValueError, match="is of other data of the name jsb; remove it"):
        other.do(TABLE[0])
    # so is what is kept of other data, where the data are here
    Studies(done.out, LIMITS, done.models, table=TABLE, places=done.places, kept=tmp_path / "kept").keep()
    kept = {"table": TABLE, "kept": tmp_path / "kept"}
    assert Studies(tmp_path / "new", LIMITS, done.models, places=places, **kept).done() == {}
    assert Studies(tmp_path / "new", LIMITS, done.models, places=done.places, **kept).done() == done.done()


def test_every_design_has_a_shipped_decoding_of_both_data_sets(tmp_path: Path) -> None:
    for design in DESIGNS:
        for data in ("jsb", "folk"):
            found = shipped_decoding(design.name, data, ROOT / MODELS)
            assert in_words(found)
            assert found["decoding"] != design.decoding or not design.leaks
    with pytest.raises(ValueError, match="has no weights for jsb, by whose decoding vli is judged"):
        shipped_decoding("vli", "jsb", tmp_path)


def test_decodings_in_words() -> None:
    sampled = {"decoding": "two_stage", "temperature": 0.5, "kind_temperature": 0.75, "top_p": 1.0}
    assert in_words(sampled) == "two_stage, T 0.5, kinds T 0.75"
    assert in_words({**sampled, "kind_temperature": None, "top_p": 0.9}) == "two_stage, T 0.5, top p 0.9"
    assert in_words({**sampled, "decoding": "argmax"}) == "argmax"


def marked_done(studies: Studies, did: list[str]) -> Callable[[Run], None]:
    """A quick stand-in for a training: note the run, take a moment, and say that it is done."""

    def do(run: Run) -> None:
        did.append(run.name)
        time.sleep(0.02)
        assert run.start is None or run.start in studies.done()
        write_atomically(studies.folder(run) / DONE, b"{}", parents=True)
        write_atomically(studies.folder(run) / SCORES, json.dumps({"key": studies.key(run)}).encode())

    return do


def test_processes_share_a_table_and_do_every_run_once(studies: Studies, monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks are those of open files: two threads with files of their own meet as two processes do."""
    did: list[str] = []
    monkeypatch.setattr(studies, "do", marked_done(studies, did))
    with ThreadPoolExecutor(3) as pool:
        for ended in [pool.submit(equal_budget.work, studies, TABLE, 0.005) for _ in range(3)]:
            ended.result(timeout=60)
    assert sorted(did) == sorted(run.name for run in TABLE)


def test_a_run_that_a_process_is_at_is_left_to_it_until_the_process_ends(
    studies: Studies, monkeypatch: pytest.MonkeyPatch
) -> None:
    did: list[str] = []
    monkeypatch.setattr(studies, "do", marked_done(studies, did))
    first = TABLE[0]
    studies.out.mkdir()
    script = (
        "import fcntl, sys, time; f = open(sys.argv[1], 'w'); fcntl.flock(f, 2); print(1, flush=True); time.sleep(99)"
    )
    lock = str(studies.folder(first).with_suffix(".lock"))
    with subprocess.Popen([sys.executable, "-c", script, lock], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()  # it holds the lock from here on
        assert not studies.do_if_free(first)
        assert studies.do_if_free(TABLE[1])
        other.kill()
    assert studies.do_if_free(first)
    assert did == [TABLE[1].name, first.name]
    assert studies.do_if_free(first)  # done already: nothing is done again
    assert len(did) == 2


def test_speeds_are_measured_once_for_all_processes(studies: Studies, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs of one design and data: steps of 6 and 3 seconds, and 60 seconds a window."""
    measured: list[str] = []
    monkeypatch.setattr(studies, "_measure", lambda run: measured.append(run.name) or ([6.0, 3.0], 60.0))
    estimates = studies.estimate(TABLE[1:])
    # 3 steps: 1 and 2 of the stages, each with a validation of 3 contexts, a third of 3/4 of a step; 5 windows, 2 seeds
    minutes = (1.25 * 6 + 2 * 1.25 * 3 + 60 * 5 * 2) / 60
    assert estimates == pytest.approx({run.name: minutes for run in TABLE[1:]})
    assert measured == ["inpaintnet-folk", "inpaintnet-folk-then-jsb"]
    again = Studies(studies.out, LIMITS, studies.models, table=TABLE, places=studies.places)
    monkeypatch.setattr(again, "_measure", lambda _: pytest.fail("measured again"))
    assert again.estimate(TABLE[1:]) == estimates


def test_runs_are_left_whose_data_are_here(tmp_path: Path, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.musib import studies as module

    monkeypatch.setattr(module, "absent", lambda data: "" if data.key == "jsb" else "gone")
    table = [TABLE[0], TABLE[1]]
    studies = Studies(tmp_path / "out", LIMITS, models, table=table)
    assert studies.places == {"jsb": (str(ROOT / "datasets_scripts" / "jsb_chorales"), "musib")}
    assert studies.left() == TABLE[:1]


def test_what_the_table_says(done: Studies, tmp_path: Path) -> None:
    studies = done
    scores = studies.scores("inpaintnet-jsb")
    assert scores is not None
    assert len(scores.items) == len(scores.values["note_f1"]) == LIMITS.test
    assert [(part.hypothesis, part.a, part.metric) for part in parts(studies)] == [
        ("more_data_helps", "inpaintnet-folk", "note_f1"),
        ("more_data_helps", "inpaintnet-folk", "own_loss"),
        ("folk_helps_jsb", "inpaintnet-folk-then-jsb", "note_f1"),
        # between the two, each design with itself; of InpaintNet's rhythm MUSIB claims no drop
        ("every_model_drops_on_jsb", "inpaintnet-folk", "position_score"),
        ("every_model_drops_on_jsb", "inpaintnet-folk", "pitch_accuracy"),
        ("few_folk_tunes_above_jsb", "inpaintnet-folk-171", "position_score"),
        ("few_folk_tunes_above_jsb", "inpaintnet-folk-171", "pitch_accuracy"),
        ("few_folk_tunes_above_jsb", "inpaintnet-folk-171", "rhythm_accuracy"),
    ]
    folk, jsb = studies.scores("inpaintnet-folk"), studies.scores("inpaintnet-jsb")
    drop = next(part for part in parts(studies) if part.hypothesis == "every_model_drops_on_jsb")
    assert drop.measure(0.95)[0] == pytest.approx(
        np.nanmean(folk.values["position_score"]) - np.nanmean(jsb.values["position_score"])
    )
    # the sign of a loss is turned: what the smaller set loses more is above 0
    loss = next(part for part in parts(studies) if part.metric == "own_loss")
    few, every = (studies.scores(name) for name in ("inpaintnet-folk-171", "inpaintnet-folk"))
    assert loss.measure(0.95)[0] == pytest.approx(np.mean(few.values["own_loss"] - every.values["own_loss"]))
    # the run after folk began with the weights of folk, and both saw as many contexts of the chorales
    assert studies.done()["inpaintnet-folk-then-jsb"]["epochs"] == studies.done()["inpaintnet-jsb"]["epochs"] == 3

    text = equal_budget.write(studies, {"vli-jsb": "why not"}, tmp_path / "tables")
    assert "`inpaintnet-folk-171`" in text
    assert "- `vli-jsb`: why not" in text
    assert {path.name for path in (tmp_path / "tables").iterdir()} == {
        "equal_budget.csv", "equal_budget_differences.csv", "data_size.svg",
    }  # fmt: skip


def test_what_is_kept_is_not_done_again_and_says_the_same(
    done: Studies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept"
    Studies(done.out, LIMITS, done.models, table=TABLE, places=done.places, kept=kept).keep()
    elsewhere = Studies(tmp_path / "out", LIMITS, done.models, table=TABLE, places={}, kept=kept)
    assert elsewhere.done() == done.done()
    for run in TABLE:
        first, second = done.scores(run.name), elsewhere.scores(run.name)
        assert (first.items, first.songs, first.size) == (second.items, second.songs, second.size)
        for metric, values in first.values.items():
            np.testing.assert_allclose(second.values[metric], values, atol=1e-6)
    assert len(list(equal_budget.result_rows(elsewhere))) == len(list(equal_budget.result_rows(done)))

    # another decoding is shipped: what is kept stands with its own, but for weights that are here
    home = tmp_path / "models"
    shutil.copytree(done.models, home)
    ship(home, "inpaintnet", "jsb", SHIPPED["folk"])
    later = Studies(tmp_path / "out", LIMITS, home, table=TABLE, places=done.places, kept=kept)
    assert later.done() == done.done()
    assert {row["decoding"] for row in equal_budget.result_rows(later)} == {"sample, T 0.5, top p 0.9", "argmax"}
    here = Studies(done.out, LIMITS, home, table=TABLE, places=done.places, kept=kept)
    assert [run.data for run in here.left()] == ["jsb", "jsb"]

    # weights are not kept: what is started from is trained again, and nothing else
    after = Run("after", "inpaintnet", "jsb", start="inpaintnet-folk")
    more = Studies(tmp_path / "more", LIMITS, done.models, table=[*TABLE, after], places=done.places, kept=kept)
    did = []
    do = more.do
    monkeypatch.setattr(more, "do", lambda run: (did.append(run.name), do(run))[1])
    more.do(after)
    assert did == ["after", "inpaintnet-folk"]

    # what is trained needs no weights of what it started from to be judged again
    (more.folder(after) / "scores.json").unlink()
    shutil.rmtree(more.folder(TABLE[1]))
    more.do(after)
    assert did == ["after", "inpaintnet-folk", "after"]

    # a folder of other data does not take the place of what is kept
    folder = done.folder(TABLE[0])
    before = (kept / f"{TABLE[0].name}.json").read_bytes()
    stale = Studies(tmp_path / "stale", LIMITS, done.models, table=TABLE, places=done.places, kept=kept)
    shutil.copytree(folder, stale.folder(TABLE[0]))
    (stale.folder(TABLE[0]) / "data.json").write_text('"of another time"')
    stale.keep()
    assert (kept / f"{TABLE[0].name}.json").read_bytes() == before

    # other settings are another run
    limits = Limits(steps=5, batch=4, epoch_steps=1)
    assert Studies(tmp_path / "out", limits, done.models, table=TABLE, places=done.places, kept=kept).done() == {}


def test_runs_of_one_design_that_were_judged_otherwise_are_not_compared() -> None:
    table = {run.name: run for run in runs()}
    names = ("vli-folk", "vli-folk-171", "sketchnet-folk-171")
    decodings = {name: {"decoding": "sample"} for name in names}
    found = Scores(["a", "b"], ["a", "b"], {}, "small")  # which nobody measures here
    studies = SimpleNamespace(
        named=table, scores=lambda name: found if name in names else None, judged_by=decodings.__getitem__
    )
    assert {(part.a, part.b) for part in parts(studies)} == {names[:2], (names[2], names[1])}
    decodings["sketchnet-folk-171"] = {"decoding": "argmax"}  # another design decodes as it does
    assert list(parts(studies))
    decodings["vli-folk-171"] = {"decoding": "argmax"}
    with pytest.raises(ValueError, match="vli-folk and vli-folk-171 were judged by different decodings; remove"):
        list(parts(studies))


def test_a_run_begins_with_the_weights_of_the_run_before(done: Studies, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.musib import studies as module

    after = Run("after", "inpaintnet", "jsb", start="inpaintnet-folk")
    studies = Studies(done.out, LIMITS, done.models, table=[TABLE[1], after], places=done.places)
    begun = []
    fit = module.fit

    def spy(model, *args, **options):
        begun.append({name: value.clone() for name, value in model.state_dict().items()})
        return fit(model, *args, **options)

    monkeypatch.setattr(module, "fit", spy)
    studies.do(after)
    before = studies._network(studies.recipe(TABLE[1]), studies.folder(TABLE[1])).state_dict()
    assert all(torch.equal(begun[0][name], value) for name, value in before.items())


def test_the_estimate_covers_every_stage_and_the_judging(studies: Studies) -> None:
    estimates = studies.estimate(TABLE[:1])
    assert set(estimates) == {"inpaintnet-jsb"}
    assert all(minutes > 0 for minutes in estimates.values())


@pytest.mark.parametrize("design", ["anticipation_rnn", "vli"])
def test_designs_of_one_stage_run_too(design: str, tmp_path: Path, models: Path, places) -> None:
    run = Run(f"{design}-jsb", design, "jsb")
    one = Studies(tmp_path / "out", LIMITS, models, table=[run], places=places)
    assert one.estimate([run])[run.name] > 0
    one.do(run)
    assert json.loads((one.folder(run) / DONE).read_text())["epochs"] == 3


def test_a_budget_leaves_out_what_does_not_fit_and_what_needs_it() -> None:
    left = [Run("a", "vli", "jsb"), Run("b", "vli", "folk"), Run("c", "vli", "jsb", start="b"), Run("d", "vli", "folk")]
    minutes = {"a": 4.0, "b": 20.0, "c": 1.0, "d": 5.0}
    assert [run.name for run in equal_budget.affordable(left, minutes, 10, [])] == ["a", "d"]
    assert [run.name for run in equal_budget.affordable(left, minutes, 30, [])] == ["a", "b", "c", "d"]
    assert [run.name for run in equal_budget.affordable(left[2:], minutes, 1, ["b"])] == ["c"]


def test_what_is_left_out_says_why(tmp_path: Path, models: Path) -> None:
    table = [Run("a", "vli", "jsb"), Run("b", "vli", "folk"), Run("c", "vli", "jsb", start="b"), Run("d", "vli", "jsb")]
    one = Studies(tmp_path, LIMITS, models, table=table, places={"jsb": ("nowhere", "none")})
    left, minutes = one.left(), {"a": 4.0, "c": 1.0, "d": 9.0}
    chosen = equal_budget.affordable(left, minutes, 10, [])
    assert equal_budget.reasons(one, left, chosen, minutes, 12.0) == {
        "b": "the data set folk is not on this machine",
        "c": "it starts from `b`, which is left out",
        "d": "about 9 core-minutes, which did not fit into --minutes-in-all 12",
    }


def test_what_the_number_of_tunes_does_is_drawn_of_designs_with_two_numbers() -> None:
    def row(run: str, design: str, data: str = "folk", metric: str = "note_f1") -> dict[str, str]:
        return {"run": run, "design": design, "data": data, "metric": metric}

    one = [row("vli-folk", "vli"), row("inpaintnet-folk", "inpaintnet"), row("vli-jsb", "vli", "jsb")]
    assert equal_budget.size_rows(one) == []
    two = [*one, row("vli-folk-171", "vli"), row("vli-folk-171", "vli", metric="pitch_accuracy")]
    assert [each["run"] for each in equal_budget.size_rows(two)] == ["vli-folk", "vli-folk-171"]
