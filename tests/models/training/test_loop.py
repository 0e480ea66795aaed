"""The training loop: schedule, augmentation, best weights, early stopping, and going on after a kill."""

import csv
import dataclasses
import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from music_evals.annotations import HOLD, REST
from music_evals.errors import (
    CorruptRecordsError,
    InvalidInputError,
    NoDataError,
    OutputError,
    UnknownNameError,
    UnreadableFileError,
)
from music_evals.models.anticipation_rnn import AnticipationRNN, AnticipationRNNConfig
from music_evals.models.training.data import draw_transpositions, transpose
from music_evals.models.training.loop import fit, learning_rate, train_from_file
from music_evals.models.training.recipe import DataConfig, Recipe, TrainingConfig
from music_evals.models.training.run import CHECKPOINT, LOG, read_checkpoint, write_checkpoint

pytestmark = pytest.mark.usefixtures("one_thread", "own_random_state")

TINY = AnticipationRNNConfig(note_embedding_size=6, metadata_embedding_size=1, hidden_size=16, linear_size=16)
DATA = DataConfig("nowhere", "none")


def recipe(**training) -> Recipe:
    settings = {"batch_size": 4, "cycles": (3,), "learning_rate": 0.01, "transpose_low": -6, "transpose_high": 6}
    return Recipe("anticipation_rnn", DATA, {}, TrainingConfig(**{**settings, **training}))


def tiny(seed: int = 0) -> AnticipationRNN:
    torch.manual_seed(seed)
    return AnticipationRNN(TINY)


def tunes(n: int, seed: int = 0) -> np.ndarray:
    """Contexts of quarter notes, each on one pitch of its own."""
    contexts = np.full((n, 384), HOLD, dtype=np.uint8)
    contexts[:, ::6] = np.random.default_rng(seed).integers(55, 75, n)[:, None]
    return contexts


class Recorder(torch.nn.Module):
    """A stand-in for a network: notes what it was given, and follows a script of validation losses."""

    def __init__(self, losses=(), saved=None):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.losses = list(losses)
        self.seen: dict[bool, list[np.ndarray]] = {True: [], False: []}
        self.varied: list[bool] = []
        self.saved: list[float] = [] if saved is None else saved

    def training_loss(self, contexts, *, varied):
        self.seen[self.training].append(contexts.numpy().copy())
        self.varied.append(varied)
        loss = 0.0 if self.training or not self.losses else self.losses.pop(0)
        return (self.weight * 1.0 + loss).expand(len(contexts))

    def save_pretrained(self, folder):  # noqa: ARG002 - nothing to save
        self.saved.append(self.weight.item())


# --- augmentation


@given(
    hnp.arrays(np.uint8, (3, 20), elements=st.integers(0, 129)),
    st.integers(-12, 0),
    st.integers(0, 12),
    st.integers(0, 99),
)
def test_transposition_is_bounded_and_can_be_undone(contexts, low, high, seed):
    shifts = draw_transpositions(contexts, low, high, np.random.default_rng(seed))
    moved = transpose(contexts, shifts)
    assert ((shifts >= low) & (shifts <= high)).all()
    assert moved.max() <= REST
    np.testing.assert_array_equal(moved >= HOLD, contexts >= HOLD)
    np.testing.assert_array_equal(moved[contexts >= HOLD], contexts[contexts >= HOLD])
    np.testing.assert_array_equal(transpose(moved, -shifts), contexts)


def test_transposition_by_hand():
    contexts = np.array([[60, 128, 129, 127], [0, 5, 128, 129]], dtype=np.uint8)
    expected = np.array([[58, 128, 129, 125], [3, 8, 128, 129]], dtype=np.uint8)
    np.testing.assert_array_equal(transpose(contexts, np.array([-2, 3])), expected)


def test_transpositions_reach_both_bounds_and_stop_at_the_ends_of_the_scale():
    contexts = np.array([[60, 61]] * 400 + [[2, 126]] * 400 + [[128, 129]] * 400, dtype=np.uint8)
    shifts = draw_transpositions(contexts, -6, 6, np.random.default_rng(0)).reshape(3, 400)
    assert [set(row.tolist()) for row in shifts] == [set(range(-6, 7)), {-2, -1, 0, 1}, set(range(-6, 7))]


def test_only_training_contexts_are_transposed(tmp_path):
    model, train, validation = Recorder(), tunes(20), tunes(6, seed=1)
    fit(model, train, validation, recipe(cycles=(2,)), tmp_path)
    np.testing.assert_array_equal(np.concatenate(model.seen[False]), np.concatenate([validation] * 2))
    first, second = np.split(np.concatenate(model.seen[True]), 2)
    assert sorted(first[:, 0]) != sorted(train[:, 0])
    assert sorted(first[:, 0]) != sorted(second[:, 0])  # another transposition at each visit
    assert len(first) == len(train)


def test_without_bounds_every_context_is_seen_as_it_is(tmp_path):
    model, train = Recorder(), tunes(10)
    fit(model, train, tunes(2), recipe(cycles=(1,), transpose_low=0, transpose_high=0), tmp_path)
    seen = np.concatenate(model.seen[True])
    assert sorted(map(tuple, seen)) == sorted(map(tuple, train))
    assert [len(batch) for batch in model.seen[True]] == [4, 4, 2]


@pytest.mark.parametrize(("n", "most"), [(6, 1), (10, 1), (23, 3)])
def test_an_epoch_may_hold_fewer_contexts_or_more(tmp_path, n, most):
    """Of 10 contexts: 6 of them, each once, all of them, and all of them twice with 3 of a third pass."""
    model, train = Recorder(), tunes(10)
    train[:, 1] = np.arange(10)  # tells them apart
    settings = recipe(cycles=(2,), epoch_contexts=n, transpose_low=0, transpose_high=0)
    fit(model, train, tunes(2), settings, tmp_path)
    first, second = np.split(np.concatenate(model.seen[True])[:, 1], 2)
    assert len(first) == len(second) == n
    counts = np.bincount(first, minlength=10)
    assert counts.max() == most
    assert counts.max() - counts.min() <= 1
    assert list(first) != list(second)  # drawn anew


def test_a_recipe_without_the_number_of_contexts_has_the_key_of_older_checkpoints():
    assert "epoch_contexts" not in recipe().key()["training"]
    assert recipe(epoch_contexts=8).key()["training"]["epoch_contexts"] == 8


def test_the_task_is_varied_after_the_plain_epochs_and_never_in_validation(tmp_path):
    """Three epochs of one training and one validation batch; the first epoch is plain."""
    model = Recorder()
    fit(model, tunes(4), tunes(2), recipe(plain_epochs=1), tmp_path)
    assert model.varied == [False, False, True, False, True, False]
    plain = Recorder()
    fit(plain, tunes(4), tunes(2), recipe(), tmp_path, resume=False)
    assert not any(plain.varied)


# --- schedule, stopping, best weights


@pytest.mark.parametrize(
    ("step", "expected"), [(0, 0.1), (9, 1.0), (10, 1.0), (60, 0.6), (109, 0.2), (110, 1.0), (165, 0.6), (220, 1.0)]
)
def test_learning_rate_rises_and_follows_half_a_cosine(step, expected):
    """Peak 1, end 0.2, warm-up 10 of 110 steps: half way down at step 60, and at 110 + 55 in the second cycle.

    At step 109 the cosine is one step from its end: 0.2 + 0.8 (1 + cos 0.99 pi) / 2 = 0.2002.
    """
    settings = TrainingConfig(learning_rate=1.0, final_learning_rate=0.2, warmup_steps=10, cycles=(11, 11, 1))
    assert learning_rate(step, 10, settings) == pytest.approx(expected, abs=3e-4)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"schedule": "constant"}, {0: 1e-4, 7: 1e-4, 999_999: 1e-4}),
        ({"schedule": "constant", "warmup_steps": 4}, {0: 2.5e-5, 3: 1e-4, 4: 1e-4, 50: 1e-4}),
        # 0.9999^6932 is a half; a tenth would be reached at step 23,025
        (
            {"schedule": "exponential", "final_learning_rate": 1e-5},
            {0: 1e-4, 1: 9.999e-5, 6931: 5.0e-5, 23_000: 1.0025e-5, 30_000: 1e-5},
        ),
        ({"schedule": "exponential", "decay": 0.5}, {2: 2.5e-5}),
    ],
)
def test_published_schedules(settings, expected):
    training = TrainingConfig(learning_rate=1e-4, **settings)
    for step, rate in expected.items():
        assert learning_rate(step, 10, training) == pytest.approx(rate, rel=2e-4), step


@pytest.mark.parametrize("step", [1, 2, 100, 3999, 4000, 4001, 20_000])
def test_noam_is_that_of_its_paper(step):
    """Equation 3 of "Attention is all you need", for a size of 512 and a warm-up of 4000; its steps count from 1."""
    training = TrainingConfig(schedule="noam", learning_rate=(512 * 4000) ** -0.5, warmup_steps=4000)
    expected = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
    assert learning_rate(step - 1, 10, training) == pytest.approx(expected, rel=1e-12)


def test_gradients_are_only_clipped_where_a_length_is_given(tmp_path, monkeypatch):
    lengths = []
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", lambda _, longest: lengths.append(longest))
    for longest in (0.5, None):
        fit(tiny(), tunes(4), tunes(2), recipe(cycles=(1,), max_gradient_norm=longest), tmp_path / str(longest))
    assert lengths == [0.5]


def test_cycles_are_counted_in_epochs(tmp_path):
    """One step an epoch, cycles of two: the rate is the peak, half, the peak, half."""
    fit(Recorder(), tunes(4), tunes(2), recipe(cycles=(2, 2), learning_rate=0.1), tmp_path)
    with (tmp_path / LOG).open() as file:
        rates = [float(row["learning_rate"]) for row in csv.DictReader(file)]
    assert rates == pytest.approx([0.1, 0.05, 0.1, 0.05])


def test_the_best_epoch_is_kept_and_patience_ends_the_run(tmp_path):
    """Validation losses 3, 1, 2, 2, ...: two epochs without a better one end the run at epoch 4."""
    model = Recorder([3, 1, 2, 2, 0, 0])
    result = fit(model, tunes(4), tunes(2), recipe(cycles=(9,), patience=2, max_gradient_norm=1e9), tmp_path)
    assert (result.epochs, result.best_epoch) == (4, 2)
    # One step an epoch, and each lowers the weight by the learning rate: Adam on a constant gradient of 1.
    rates = [learning_rate(step, 1, recipe(cycles=(9,)).training) for step in range(2)]
    assert model.saved == [model.weight.item()]
    assert model.saved[0] == pytest.approx(-sum(rates), rel=1e-4)
    with (tmp_path / LOG).open() as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == ["1", "2", "3", "4"]
    assert min(float(row["validation_loss"]) for row in rows) == result.validation_loss


def test_no_epoch_starts_after_the_time_is_up(tmp_path):
    clock = itertools.count(100.0, 25.0).__next__  # an epoch takes 25 s
    result = fit(Recorder(), tunes(4), tunes(2), recipe(cycles=(9,), max_minutes=1), tmp_path, clock=clock)
    assert result.epochs == 3
    assert result.seconds == 75


@pytest.mark.slow
def test_training_reduces_the_loss(tmp_path):
    result = fit(tiny(), tunes(16), tunes(8, seed=1), recipe(cycles=(8,)), tmp_path)
    with (tmp_path / LOG).open() as file:
        losses = [float(row["train_loss"]) for row in csv.DictReader(file)]
    assert losses[-1] < losses[0] / 2
    assert result.validation_loss < losses[0] / 2


@pytest.mark.slow
def test_a_batch_can_be_learnt_by_heart(tmp_path):
    """Four trills, each on two pitches of its own, then decoded without their middles."""
    contexts = np.stack([60 + 10 * row + np.arange(384) % 2 for row in range(4)]).astype(np.uint8)
    sizes = {"note_embedding_size": 16, "hidden_size": 16, "linear_size": 16, "n_layers": 1}
    torch.manual_seed(0)
    model = AnticipationRNN(dataclasses.replace(TINY, **sizes, dropout=0.0, note_dropout=0.0))
    how = {"epoch_contexts": 80, "learning_rate": 0.05, "transpose_low": 0, "transpose_high": 0}
    result = fit(model, contexts, contexts, recipe(cycles=(3,), **how), tmp_path)
    assert result.validation_loss < 0.05
    model.decoding = "argmax"
    middles = model.inpaint(contexts, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(middles, contexts[:, 144:240])


def test_mixed_precision_trains(tmp_path):
    result = fit(tiny(), tunes(8), tunes(4), recipe(precision="bfloat16"), tmp_path)
    assert np.isfinite(result.validation_loss)


def test_a_loss_that_is_no_number_ends_the_run(tmp_path):
    model = Recorder()
    model.weight.data.fill_(float("nan"))
    with pytest.raises(InvalidInputError, match="learning_rate"):
        fit(model, tunes(4), tunes(2), recipe(), tmp_path)


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("loss", [np.nan, np.inf])
def test_a_validation_loss_that_is_never_finite_ends_the_run_by_name(tmp_path, loss, started):
    for _ in range(2):  # going on from the checkpoint does not get around it
        model = Recorder([loss] * 4)
        with pytest.raises(InvalidInputError):
            fit(model, tunes(4), tunes(2), recipe(), tmp_path, started=started)
        assert model.saved == []
        assert not [name for name in read_checkpoint(tmp_path / CHECKPOINT, "")[1] if name.startswith("best.")]


@pytest.mark.parametrize("started", [False, True])
def test_epochs_without_a_finite_validation_loss_are_never_the_best(tmp_path, started):
    losses = [np.nan] * started + [np.nan, np.nan, 2.0, 1.0, np.nan]
    model = Recorder(losses)
    settings = recipe(cycles=(5,), patience=3, learning_rate=1e-9)
    result = fit(model, tunes(4), tunes(2), settings, tmp_path, started=started)
    assert (result.epochs, result.best_epoch) == (5, 4)
    assert result.validation_loss == pytest.approx(1.0)


# --- resuming


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.random.fork_rng():
        fit(tiny(), tunes(10), tunes(4, seed=1), recipe(), folder)
    torch.set_num_threads(threads)
    return folder


class Interrupted(AnticipationRNN):
    """Raises in the middle of the second epoch (3 training and 1 validation batch each)."""

    calls = 0

    def training_loss(self, contexts, *, varied=False):
        self.calls += 1
        if self.calls == 6:
            raise KeyboardInterrupt
        return super().training_loss(contexts, varied=varied)


def test_a_run_stopped_between_checkpoints_ends_with_equal_weights(tmp_path, whole_run):
    torch.manual_seed(0)
    with pytest.raises(KeyboardInterrupt):
        fit(Interrupted(TINY), tunes(10), tunes(4, seed=1), recipe(), tmp_path)
    assert not (tmp_path / "model.safetensors").exists()  # a run that is cut short spoils no model
    torch.manual_seed(77)  # nothing of the state at the restart may matter
    result = fit(tiny(seed=77), tunes(10), tunes(4, seed=1), recipe(), tmp_path)
    assert result.epochs == 3
    assert weights(tmp_path) == weights(whole_run)


@pytest.mark.slow
def test_a_killed_run_ends_with_equal_weights(tmp_path, whole_run):
    script = f"""
import os, signal, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
import torch
torch.set_num_threads(1)
import test_loop as t
class Killed(t.Interrupted):
    def training_loss(self, contexts, *, varied):
        try:
            return super().training_loss(contexts, varied=varied)
        except KeyboardInterrupt:
            os.kill(os.getpid(), signal.SIGKILL)
torch.manual_seed(0)
t.fit(Killed(t.TINY), t.tunes(10), t.tunes(4, seed=1), t.recipe(), Path(sys.argv[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path],
        check=False,
        timeout=120,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (tmp_path / CHECKPOINT).exists()
    fit(tiny(seed=77), tunes(10), tunes(4, seed=1), recipe(), tmp_path)
    assert weights(tmp_path) == weights(whole_run)


def test_a_finished_run_is_not_run_again(whole_run):
    before = weights(whole_run)
    model = Interrupted(TINY)
    result = fit(model, tunes(10), tunes(4, seed=1), recipe(), whole_run)
    assert result.epochs == 3
    assert model.calls == 0
    assert weights(whole_run) == before


def test_starting_again_ignores_the_checkpoint(tmp_path):
    first = fit(tiny(), tunes(6), tunes(2), recipe(cycles=(1,)), tmp_path)
    model = Interrupted(TINY)
    second = fit(model, tunes(6), tunes(2), recipe(cycles=(1,)), tmp_path, resume=False)
    assert first.epochs == second.epochs == 1
    assert model.calls == 3


def test_a_longer_time_is_no_other_recipe(tmp_path):
    fit(Recorder(), tunes(4), tunes(2), recipe(max_minutes=1e-9), tmp_path)
    assert fit(Recorder(), tunes(4), tunes(2), recipe(max_minutes=60), tmp_path).epochs == 3


@pytest.mark.slow
def test_more_cycles_go_on_from_a_finished_run(tmp_path):
    folders = {name: tmp_path / name for name in ("once", "twice")}
    fit(tiny(), tunes(10), tunes(4, seed=1), recipe(cycles=(2, 1, 1)), folders["once"])
    fit(tiny(), tunes(10), tunes(4, seed=1), recipe(cycles=(2,)), folders["twice"])
    more = fit(tiny(seed=77), tunes(10), tunes(4, seed=1), recipe(cycles=(2, 1, 1)), folders["twice"])
    assert more.epochs == 4
    assert weights(folders["once"]) == weights(folders["twice"])
    with pytest.raises(CorruptRecordsError):  # its last two epochs were no cycle of two
        fit(tiny(), tunes(10), tunes(4, seed=1), recipe(cycles=(2, 2)), folders["twice"])


def test_damaged_or_foreign_checkpoints_are_named(tmp_path):
    fit(Recorder(), tunes(4), tunes(2), recipe(cycles=(1,)), tmp_path)
    with pytest.raises(CorruptRecordsError, match=r"written by another recipe; delete .*checkpoint\.safetensors"):
        fit(Recorder(), tunes(4), tunes(2), recipe(cycles=(2,)), tmp_path)
    whole = (tmp_path / CHECKPOINT).read_bytes()
    write_checkpoint(tmp_path / CHECKPOINT, {}, {"key": {}})  # as of a language model
    with pytest.raises(CorruptRecordsError, match="written by another recipe"):
        fit(Recorder(), tunes(4), tunes(2), recipe(cycles=(1,)), tmp_path)
    for broken in (whole[:50], b"", b"{}"):
        (tmp_path / CHECKPOINT).write_bytes(broken)
        with pytest.raises(CorruptRecordsError, match="damaged"):
            fit(Recorder(), tunes(4), tunes(2), recipe(cycles=(1,)), tmp_path)


def test_a_checkpoint_of_other_data_is_refused_and_one_that_does_not_say_is_taken(tmp_path):
    fit(Recorder(), tunes(4), tunes(2), recipe(cycles=(2,)), tmp_path)
    for train, validation in ((tunes(4, seed=9), tunes(2)), (tunes(4), tunes(2, seed=9)), (tunes(5), tunes(2))):
        with pytest.raises(CorruptRecordsError, match="`out`"):
            fit(Recorder(), train, validation, recipe(cycles=(2,)), tmp_path)
    path = tmp_path / CHECKPOINT
    state, tensors = read_checkpoint(path, "")
    del state["data"], state["history"][1:]  # as written before data were looked at, after one epoch of two
    write_checkpoint(path, tensors, state)
    fit(Recorder(), tunes(4), tunes(2), recipe(cycles=(2,)), tmp_path)
    assert set(read_checkpoint(path, "")[0]["data"]) == {"train", "validation"}


def test_a_device_that_is_not_there_is_named(tmp_path):
    for device, message in (("cuda:99", "needs a GPU that is not there"), ("foo", "torch has no device 'foo' here")):
        with pytest.raises(InvalidInputError, match=message):
            fit(Recorder(), tunes(4), tunes(2), recipe(), tmp_path, device=device)


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="run: cannot be made"):
        fit(Recorder(), tunes(4), tunes(2), recipe(cycles=(1,)), tmp_path / "file")


# --- recipes


def write_tunes(folder: Path) -> None:
    """Write a dataset of 6 and 3 contexts, as the recipe of `write_recipe` names it."""
    import datasets

    for split, n in (("train", 6), ("validation", 3)):
        rows = datasets.Dataset.from_dict({"tokens": tunes(n).tolist()})
        rows.to_parquet(folder / "data" / "tiny" / f"{split}-00000-of-00001.parquet")
    (folder / "README.md").write_text(
        "---\nconfigs:\n- config_name: tiny\n  data_files:\n  - split: train\n    path: data/tiny/train-*\n"
        "  - split: validation\n    path: data/tiny/validation-*\n---\n"
    )


def test_a_recipe_trains_a_model_from_a_dataset_folder(tmp_path, write_recipe):
    write_tunes(tmp_path / "data")
    (tmp_path / "model").mkdir()
    path = write_recipe(tmp_path / "model")
    result = train_from_file(path)
    assert result.epochs == 2
    assert AnticipationRNN.from_pretrained(result.folder).config.hidden_size == 8
    first, state, threads = weights(result.folder), torch.get_rng_state(), torch.get_num_threads()
    train_from_file(path, resume=False)
    assert weights(result.folder) == first
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    with pytest.raises(NoDataError, match="'dev'"):
        train_from_file(write_recipe(tmp_path / "model", data="{dataset: ../data, config: tiny, train: dev}"))
    with pytest.raises(UnknownNameError, match="'jsb_choral'"):
        train_from_file(write_recipe(tmp_path / "model", data="{dataset: jsb_choral, config: musib}"))


@pytest.mark.slow
def test_a_training_starts_from_the_weights_of_another(tmp_path, write_recipe):
    write_tunes(tmp_path / "data")
    (tmp_path / "model").mkdir()
    path = write_recipe(tmp_path / "model")
    first, still = train_from_file(path), ["training.cycles=[1]", "training.learning_rate=1e-9"]
    state = torch.get_rng_state()
    more = train_from_file(path, out=tmp_path / "more", start=first.folder, changes=still)
    assert torch.equal(torch.get_rng_state(), state)
    assert more.validation_loss == pytest.approx(first.validation_loss, abs=1e-3)  # half precision lies between them
    assert train_from_file(path, out=tmp_path / "anew", changes=still).validation_loss > first.validation_loss + 0.01
    assert train_from_file(path, out=more.folder, start=first.folder, changes=still) == more  # and is not run again
    for other in (None, tmp_path / "anew"):  # a checkpoint belongs to what its run started from
        with pytest.raises(CorruptRecordsError, match="on other data, or from another start; name another folder"):
            train_from_file(path, out=more.folder, start=other, changes=still)


def test_a_start_is_kept_where_no_epoch_is_better(tmp_path):
    model = Recorder([1, 3, 2])
    result = fit(model, tunes(4), tunes(2), recipe(cycles=(2,)), tmp_path, started=True)
    assert (result.epochs, result.best_epoch, result.validation_loss) == (2, 0, 1)
    assert model.saved == [0]  # the weight that it came with
    with (tmp_path / LOG).open(encoding="utf-8", newline="") as file:
        start, *trained = csv.DictReader(file)
    assert (start["epoch"], start["train_loss"], start["validation_loss"]) == ("0", "", "1.0")
    assert [row["epoch"] for row in trained] == ["1", "2"]
    again = fit(model, tunes(4), tunes(2), recipe(cycles=(2,)), tmp_path, started=True)
    assert (again.best_epoch, again.validation_loss, len(model.losses)) == (0, 1, 0)
    better = fit(Recorder([3, 1, 2]), tunes(4), tunes(2), recipe(cycles=(2,)), tmp_path / "better", started=True)
    assert better.best_epoch == 1
    assert better.validation_loss == pytest.approx(1, abs=0.02)  # less what the weight has learnt


def test_patience_gives_a_cycle_from_a_start_as_long_as_any_other(tmp_path):
    """Losses 5, 4, 3 of a hot beginning are worse than the start's 1, and no reason to stop before 0.5."""
    model = Recorder([1, 5, 4, 3, 0.5, 0.4, 0.3])
    result = fit(model, tunes(4), tunes(2), recipe(cycles=(6,), patience=2), tmp_path, started=True)
    assert (result.epochs, result.best_epoch) == (6, 6)


def test_a_run_from_a_start_that_is_stopped_goes_on_from_it(tmp_path):
    runs = {name: tmp_path / name for name in ("whole", "stopped")}
    fit(tiny(), tunes(10), tunes(4, seed=1), recipe(), runs["whole"], started=True)
    torch.manual_seed(0)
    with pytest.raises(KeyboardInterrupt):
        fit(Interrupted(TINY), tunes(10), tunes(4, seed=1), recipe(), runs["stopped"], started=True)
    fit(tiny(), tunes(10), tunes(4, seed=1), recipe(), runs["stopped"], started=True)
    assert weights(runs["stopped"]) == weights(runs["whole"])
    path = runs["stopped"] / CHECKPOINT
    state, tensors = read_checkpoint(path, "")
    del state["data"]  # as written before there were starts
    write_checkpoint(path, tensors, state)
    with pytest.raises(CorruptRecordsError, match="from another start"):
        fit(tiny(), tunes(10), tunes(4, seed=1), recipe(), runs["stopped"], started=True)


def test_a_start_that_does_not_fit_is_named(tmp_path, write_recipe):
    write_tunes(tmp_path / "data")
    (tmp_path / "model").mkdir()
    wide, path = tmp_path / "wide", write_recipe(tmp_path / "model")
    AnticipationRNN(TINY).save_pretrained(wide)
    with pytest.raises(InvalidInputError, match="`start`"):
        train_from_file(path, out=tmp_path / "out", start=wide)
    with pytest.raises(UnknownNameError, match="nowhere"):
        train_from_file(path, out=tmp_path / "out", start="nowhere")
    with pytest.raises(InvalidInputError, match="`out`"):
        train_from_file(path, out=tmp_path / "more" / ".." / "wide", start=wide)
    with pytest.raises(InvalidInputError, match="music_tagger"):
        train_from_file(write_recipe(tmp_path, model_type="music_tagger"), out=tmp_path / "out", start=wide)


def test_a_dataset_is_found_by_its_name(tmp_path, monkeypatch, write_recipe):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoDataError, match="'dev'"):
        train_from_file(write_recipe(tmp_path, data="{dataset: jsb_chorales, config: musib, train: dev}"))


def test_missing_recipes_and_unknown_models_are_named(tmp_path, write_recipe):
    with pytest.raises(UnreadableFileError, match="cannot read the recipe"):
        train_from_file(tmp_path / "train.yaml")
    with pytest.raises(UnknownNameError, match="'anticipation_rn'"):
        train_from_file(write_recipe(tmp_path, model_type="anticipation_rn"))
    with pytest.raises(UnknownNameError, match="'hiden_size'"):
        train_from_file(write_recipe(tmp_path, model="{hiden_size: 8}"))


# --- averaged weights, and networks that say what they are judged by


class Counter(Recorder):
    """Its weight is -1, -2, ... after each step of plain descent at a learning rate of 1; judged by its weight."""

    def validation_losses(self, contexts):
        self.judged = [*getattr(self, "judged", []), self.weight.item()]
        return (self.weight + 10).expand(len(contexts)).double()


def test_the_moving_average_by_hand(tmp_path, monkeypatch):
    """Of weights -1, -2, -3, -4: each step keeps min(share, (1 + step) / (10 + step)) of the average so far."""
    monkeypatch.setattr(torch.optim, "AdamW", lambda parameters, lr, weight_decay: torch.optim.SGD(parameters, lr=1.0))  # noqa: ARG005
    network = Counter()
    settings = recipe(cycles=(2,), batch_size=4, schedule="constant", learning_rate=1.0, average=0.15)
    result = fit(network, tunes(8), tunes(3), settings, tmp_path)
    average = 0.0
    averages = []
    for step in range(4):
        share = min(0.15, (1 + step) / (10 + step))
        average = share * average + (1 - share) * -(step + 1)
        averages.append(average)
    assert network.judged == pytest.approx([averages[1], averages[3]])
    assert result.validation_loss == pytest.approx(10 + averages[3])
    assert network.weight.item() == pytest.approx(averages[3])


@pytest.mark.slow
def test_a_run_with_averaged_weights_goes_on_where_it_was(tmp_path):
    """Stopped after one of four epochs, it ends with the same weights, and they are not those of a run without."""
    ends = {}
    for name, average, stops in (("plain", 0.0, []), ("whole", 0.9, []), ("stopped", 0.9, [1e-9])):
        for max_minutes in (*stops, None):
            ends[name] = tiny()
            settings = recipe(cycles=(4,), average=average, max_minutes=max_minutes)
            torch.manual_seed(0)
            fit(ends[name], tunes(8), tunes(4, 1), settings, tmp_path / name)
            assert max_minutes is None or not same(ends[name], ends["whole"])
    assert same(ends["whole"], ends["stopped"])
    assert not same(ends["whole"], ends["plain"])


def same(one, other) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)
