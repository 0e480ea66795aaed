import dataclasses
import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from music_evals.annotations import N_ROLL_PITCHES, Arrangement
from music_evals.errors import InvalidInputError, OtherResultsError, OutputError, UnknownNameError, UnreadableFileError
from music_evals.models.gibbs import GibbsSettings, GibbsState, arrangement_of, gibbs_sweeps, transfer
from music_evals.models.layers import gibbs as gibbs_samplers
from music_evals.models.layers.gibbs import plan_sweep, step_groups, sweep_uniforms
from music_evals.symbolic.encodings.piano_rolls import roll_notes

from .tiny_roll_network import WINDOW, TinyRollNetwork, piece, roll

SHORT = GibbsSettings(sweeps=4)


def rolls(network, arrangement, chosen, seed=0, start=None):
    return list(gibbs_sweeps(network, arrangement, chosen, seed, start=start))


def assert_equal_sweeps(first, second):
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.cells, other.cells)
        np.testing.assert_array_equal(one.state.snapshot, other.state.snapshot)
        assert (one.index, one.n_changed) == (other.index, other.n_changed)


# --- the schedule


def test_refreshes_and_groups_are_those_of_the_published_schedule():
    """16 bars, 15 sweeps: the numbers of a simulation of the authors' loop; the ninth depends on the order by one."""
    published, since, refreshes = GibbsSettings(), 0, []
    for sweep in range(15):
        assert len(step_groups(512, 257, 3, sweep)) == 257
        plan = plan_sweep(published, 512, 257, seed=3, sweep=sweep, since_refresh=since)
        since = plan.since_refresh
        refreshes.append(sum(block.refreshes for block in plan.blocks))
        assert [block.sequential for block in plan.blocks] == [sweep >= 9] * len(plan.blocks)
    assert refreshes[:8] == [1, 2, 3, 3, 3, 4, 7, 10]
    assert refreshes[8] in {52, 53}
    assert refreshes[9:] == [0] * 6


@given(st.integers(1, 70), st.integers(1, 30), st.integers(0, 5), st.sampled_from([0.0, 0.05]))
def test_each_sweep_visits_each_step_once_and_no_two_together_that_see_each_other(n_steps, spacing, sweep, least):
    chosen = GibbsSettings(sweeps=6, alpha_min=least)
    plan = plan_sweep(chosen, n_steps, spacing, seed=1, sweep=sweep, since_refresh=0)
    groups = [group for block in plan.blocks for group in block.groups]
    assert sorted(itertools.chain(*groups)) == list(range(n_steps))
    assert all((np.diff(group) == spacing).all() for group in groups)
    assert least == 0 or not any(block.sequential for block in plan.blocks)


def test_order_and_uniforms_differ_by_seed_and_sweep_and_order_needs_no_uniforms():
    assert [list(group) for group in step_groups(50, 50, 1, 0)] != [list(group) for group in step_groups(50, 50, 1, 1)]
    draws = [sweep_uniforms(5, seed, sweep) for seed in (0, 1) for sweep in (0, 1)]
    assert len({array.tobytes() for array in draws}) == 4
    assert all(((array >= 0) & (array < 1)).all() for array in draws)


def test_block_that_anneals_to_the_end_in_the_middle_of_a_sweep_goes_on_step_by_step():
    plan = plan_sweep(GibbsSettings(sweeps=2, eta=0.25), 40, 40, seed=0, sweep=0, since_refresh=0)
    assert [block.sequential for block in plan.blocks][-1]
    assert sum(map(len, plan.blocks[-1].groups)) == 20


def test_fewer_and_fewer_steps_are_hidden_and_none_where_each_sees_all_before_it():
    chosen, since, hidden = GibbsSettings(hidden_max=8), 0, []
    for sweep in range(chosen.sweeps):
        plan = plan_sweep(chosen, 512, 257, seed=0, sweep=sweep, since_refresh=since)
        since = plan.since_refresh
        hidden += [block.hidden for block in plan.blocks]
        assert not any(block.hidden for block in plan.blocks if block.sequential)
    assert hidden[0] == 8
    assert hidden == sorted(hidden, reverse=True)
    assert set(hidden) == set(range(9))


# --- the samplers are the same transition


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_exact_sampler_gives_the_rolls_of_the_naive_one_bit_for_bit(data):
    n_steps = data.draw(st.sampled_from([1, 2, WINDOW, WINDOW + 1, 2 * WINDOW, 11]))
    chosen = GibbsSettings(
        sweeps=data.draw(st.integers(1, 3)),
        eta=data.draw(st.sampled_from([0.25, 0.6])),
        alpha_min=data.draw(st.sampled_from([0.0, 0.0, 0.1])),
        hidden_max=data.draw(st.sampled_from([0, 0, 2])),
        mode=data.draw(st.sampled_from(["sample", "threshold"])),
        temperature=data.draw(st.sampled_from([1.0, 0.7])),
        calibrate=data.draw(st.booleans()),
        melody=data.draw(st.sampled_from(["clamp", "code"])),
        windows_at_once=data.draw(st.sampled_from([None, 1, 3])),
        call_cost=data.draw(st.sampled_from([None, 0.0, 20.0])),
        spacing=data.draw(st.sampled_from([None, WINDOW + 2])),
    )
    seed = data.draw(st.integers(0, 99))
    network, arrangement = TinyRollNetwork(seed, scale=data.draw(st.sampled_from([0.1, 0.5]))), piece(n_steps, seed)
    network.whole = data.draw(st.booleans())  # how many steps are asked for together changes nothing
    fast = rolls(network, arrangement, chosen, seed)
    slow = rolls(network, arrangement, dataclasses.replace(chosen, sampler="naive"), seed)
    assert_equal_sweeps(fast, slow)
    # rounding of sums is of order 1e-14: nothing was decided by it
    assert all(sweep.closest > 1e-12 for sweep in fast)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["sample", "threshold"])
def test_exact_sampler_is_the_naive_one_where_steps_are_worked_out_ahead_in_vain(mode):
    chosen = GibbsSettings(sweeps=3, eta=0.33, mode=mode, call_cost=8.0)
    network, arrangement = TinyRollNetwork(5, scale=0.3), piece(10, 2)
    fast = rolls(network, arrangement, chosen, 7)
    assert_equal_sweeps(fast, rolls(network, arrangement, dataclasses.replace(chosen, sampler="naive"), 7))
    assert np.isnan(fast[0].accepted)
    assert 0 < min(sweep.accepted for sweep in fast[1:]) < 1
    assert all(1 <= sweep.passes < 84 for sweep in fast[1:])


@pytest.mark.slow
def test_keeping_steps_that_would_have_seen_a_change_is_noticed(monkeypatch):
    chosen = GibbsSettings(sweeps=2, eta=0.2, call_cost=20.0)
    network, arrangement = TinyRollNetwork(5, scale=0.3), piece(10, 2)
    slow = rolls(network, arrangement, dataclasses.replace(chosen, sampler="naive"), 7)
    monkeypatch.setattr(gibbs_samplers, "_count_valid", lambda groups, *_: (len(groups), sum(map(len, groups))))
    with pytest.raises(AssertionError):
        assert_equal_sweeps(rolls(network, arrangement, chosen, 7), slow)


@pytest.mark.slow
def test_one_window_at_a_time_is_bit_for_bit_in_float32_too_whatever_is_worked_out_ahead():
    network = TinyRollNetwork(2, scale=0.3).float()
    arrangement = piece(12, 1)
    first = rolls(network, arrangement, GibbsSettings(sweeps=3, eta=0.3))
    assert_equal_sweeps(first, rolls(network, arrangement, GibbsSettings(sweeps=3, eta=0.3, call_cost=30.0)))
    assert_equal_sweeps(first, rolls(network, arrangement, GibbsSettings(sweeps=3, eta=0.3, sampler="naive")))


@pytest.mark.parametrize("sampler", ["exact", "naive"])
def test_probability_that_equals_the_threshold_sounds(sampler):
    """All weights 0: every logit is 0 and every probability a half, in all orders of adding up."""
    network = TinyRollNetwork(scale=0.0)
    network.pitch_logits = lambda _context, rows: torch.zeros(rows.shape, dtype=torch.float64)
    chosen = GibbsSettings(sweeps=1, mode="threshold", calibrate=False, sampler=sampler)
    [sweep] = rolls(network, piece(3), chosen)
    assert sweep.cells.all()
    assert sweep.closest == 0


def test_share_of_drawn_cells_is_their_probability():
    network = TinyRollNetwork(scale=0.0)
    network.pitch_logits = lambda _context, rows: torch.full(rows.shape, -1.0, dtype=torch.float64)
    silent = roll(np.zeros((300, N_ROLL_PITCHES), dtype=np.bool_))
    for chosen, logit in ((GibbsSettings(sweeps=1), -1.5), (GibbsSettings(sweeps=1, temperature=2), -0.75)):
        [sweep] = rolls(network, Arrangement(silent, silent), chosen)
        assert sweep.density == pytest.approx(1 / (1 + np.exp(-logit)), abs=0.01)  # 25,200 cells: sd 0.003
    [sweep] = rolls(network, Arrangement(silent, silent), GibbsSettings(sweeps=1, calibrate=False))
    assert sweep.density == pytest.approx(1 / (1 + np.exp(1.0)), abs=0.01)


# --- what a sweep does, worked out by hand


class PlainNetwork:
    """A cell sounds where the pitch below sounds in its step, or the same pitch in the step before."""

    window = 2
    whole = False

    def context(self, cells, _meta, steps, *, hidden=0):  # noqa: ARG002 - nothing but the step before is told
        before = torch.cat([torch.zeros_like(cells[:1]), cells])[steps]
        return before.double()[..., None]

    def pitch_logits(self, context, rows):
        below = torch.nn.functional.pad(rows[:, :-1].double(), (1, 0))
        return torch.maximum(context[..., 0], below) - 0.5

    def calibrated(self, logits):
        return torch.sigmoid(logits)


def swept_by_hand(cells, order, *, sequential):
    """Return the cells after a sweep in some order, where the first row and column have nothing before and below."""
    old, new = cells.copy(), cells.copy()
    for step in order:
        seen = new if sequential else old
        for pitch in range(N_ROLL_PITCHES):
            new[step, pitch] = (step > 0 and seen[step - 1, pitch]) or (pitch > 0 and seen[step, pitch - 1])
    return new


@pytest.mark.parametrize("sampler", ["exact", "naive"])
@pytest.mark.parametrize("sequential", [True, False])
def test_sweep_reads_one_snapshot_or_all_that_was_written_before(sampler, sequential):
    cells = np.random.default_rng(0).random((9, N_ROLL_PITCHES)) < 0.02
    silent = roll(np.zeros_like(cells))
    share = 0.0 if sequential else 1.0
    chosen = GibbsSettings(sweeps=1, alpha_max=share, alpha_min=share, mode="threshold", sampler=sampler, call_cost=5)
    [sweep] = rolls(PlainNetwork(), Arrangement(silent, roll(cells)), chosen, 3)
    order = [step for group in step_groups(9, 2, 3, 0) for step in group]
    np.testing.assert_array_equal(sweep.cells, swept_by_hand(cells, order, sequential=sequential))
    assert sweep.n_changed == (sweep.cells != cells).sum() > 0


# --- the melody


@pytest.mark.parametrize("n_steps", [1, WINDOW, 31])
def test_melody_sounds_after_every_sweep_and_is_the_melody_of_the_result(n_steps):
    arrangement = piece(n_steps)
    network = TinyRollNetwork(1, scale=0.4)
    for sweep in gibbs_sweeps(network, arrangement, GibbsSettings(), 0):
        assert sweep.cells[arrangement.melody.cells].all()
        assert sweep.density == sweep.cells.mean()
    written = transfer(network, arrangement, np.random.default_rng(0), GibbsSettings())
    assert written.melody is arrangement.melody
    assert not (written.accompaniment.cells & written.melody.cells).any()


def test_melody_of_the_authors_code_is_lost_at_the_first_snapshot_and_kept_at_the_end():
    network = TinyRollNetwork(scale=0.0)
    network.pitch_logits = lambda _context, rows: torch.full(rows.shape, -9.0, dtype=torch.float64)
    arrangement = piece(20)
    swept = rolls(network, arrangement, GibbsSettings(sweeps=15, mode="threshold", melody="code"))
    melody = arrangement.melody.cells
    assert not swept[4].cells.any()
    assert not swept[12].cells.any()
    # imposed in sweeps 0 to 13, frozen after more than 12
    np.testing.assert_array_equal(swept[13].cells, melody)
    np.testing.assert_array_equal(swept[14].cells, melody)


# --- stopping and going on


@pytest.mark.parametrize("melody", ["clamp", "code"])
def test_run_that_is_saved_after_any_sweep_ends_as_if_it_had_not_been(tmp_path, melody):
    chosen = GibbsSettings(sweeps=5, melody=melody)
    network, arrangement = TinyRollNetwork(3, scale=0.3), piece(18)
    whole = rolls(network, arrangement, chosen, 4)
    for sweep in whole:
        sweep.state.save(tmp_path / "run.npz")
        start = GibbsState.load(tmp_path / "run.npz")
        assert_equal_sweeps(rolls(network, arrangement, chosen, 4, start), whole[sweep.index + 1 :])
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]


def test_state_of_another_run_is_refused():
    network, arrangement = TinyRollNetwork(), piece(6)
    state = next(gibbs_sweeps(network, arrangement, SHORT, 0)).state
    for other, what in (
        ((piece(6, 1), SHORT, 0), "piece"),
        ((arrangement, GibbsSettings(sweeps=5), 0), "settings"),
        ((arrangement, SHORT, 1), "seed"),
    ):
        with pytest.raises(OtherResultsError, match=what):
            gibbs_sweeps(network, *other, start=state)


def test_file_that_is_no_state_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    with pytest.raises(UnreadableFileError, match=r"run\.npz"):
        GibbsState.load(path)
    path.write_bytes(b"PK\x03\x04 not a zip")
    with pytest.raises(UnreadableFileError, match=r"run\.npz"):
        GibbsState.load(path)
    np.savez(path, about=np.array("{}"), cells=np.zeros(3), snapshot=np.zeros(3))
    with pytest.raises(UnreadableFileError, match="begin"):
        GibbsState.load(path)
    np.savez(path, about=np.array([{}], dtype=object), cells=np.zeros(3), snapshot=np.zeros(3))
    with pytest.raises(UnreadableFileError, match="begin"):  # a pickle is never opened
        GibbsState.load(path)
    with pytest.raises(OutputError):
        GibbsState.begin(piece(2), SHORT, 0).save(tmp_path / "missing" / "run.npz")


# --- starts of notes


def heard_at(network, *places):
    """Let a network hear starts at some places, just above the threshold, and nearly so elsewhere."""

    def heard(cells, _meta):
        found = torch.full(cells.shape, 0.05, dtype=torch.float64)
        for place in places:
            found[place] = 0.051
        return found

    network.onset_probabilities = heard
    return network


def notes_of(arrangement):
    return [
        (int(note["onset_tick"]), int(note["duration_tick"]), int(note["pitch"]) - 21)
        for note in roll_notes(arrangement.accompaniment)
    ]


def test_notes_of_the_accompaniment_follow_the_starts_that_are_heard():
    cells = np.zeros((8, N_ROLL_PITCHES), dtype=np.bool_)
    cells[0:6, 10] = True  # heard again at step 3: the cell before falls silent
    cells[2:4, 20] = True  # heard at its two steps: two notes of one step
    cells[1:7, 50] = True  # melody at steps 1 to 4; what sounds on afterwards is the accompaniment's
    melody = np.zeros_like(cells)
    melody[1:5, 50] = True
    arrangement = Arrangement(roll(melody), roll(np.zeros_like(cells)))
    places = ((3, 10), (2, 20), (3, 20), (7, 30), (3, 50))  # at (7, 30) nothing sounds
    network = heard_at(TinyRollNetwork(), *places)
    written = arrangement_of(network, cells, arrangement, SHORT)
    assert sorted(notes_of(written)) == [(0, 2, 10), (2, 1, 20), (3, 1, 20), (3, 3, 10), (5, 2, 50)]
    np.testing.assert_array_equal(written.melody.onsets, arrangement.melody.onsets)
    assert written.accompaniment.offsets[[2, 6], 10].all()
    doubled = arrangement_of(network, cells, arrangement, GibbsSettings(restrike_melody=True))
    assert (3, 4, 50) in notes_of(doubled)


def test_transfer_gives_equal_arrangements_for_equal_seeds_only_and_leaves_training_mode_alone():
    network, arrangement = TinyRollNetwork(1, scale=0.3), piece(9)
    network.train()
    one, same, other = (transfer(network, arrangement, np.random.default_rng(seed), SHORT) for seed in (0, 0, 1))
    assert network.training
    np.testing.assert_array_equal(one.accompaniment.onsets, same.accompaniment.onsets)
    np.testing.assert_array_equal(one.accompaniment.cells, same.accompaniment.cells)
    assert (one.accompaniment.cells != other.accompaniment.cells).any()


# --- refusals


@pytest.mark.parametrize(
    "wrong",
    [
        {"alpha_max": 0.2, "alpha_min": 0.3},
        {"alpha_max": 1.5},
        {"eta": 0},
        {"temperature": float("nan")},
        {"sweeps": 0},
        {"windows_at_once": 0},
        {"call_cost": float("inf")},
    ],
)
def test_settings_outside_of_their_ranges_are_refused(wrong):
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        GibbsSettings(**wrong)


@pytest.mark.parametrize("field", ["mode", "melody", "sampler"])
def test_unknown_choices_are_refused(field):
    with pytest.raises(UnknownNameError, match="wrong"):
        GibbsSettings(**{field: "wrong"})


def test_input_that_cannot_be_sampled_is_refused_at_once():
    network = TinyRollNetwork()
    with pytest.raises(InvalidInputError, match="spacing"):
        gibbs_sweeps(network, piece(9), GibbsSettings(spacing=WINDOW - 1), 0)
    with pytest.raises(InvalidInputError, match="seed"):
        gibbs_sweeps(network, piece(9), SHORT, -1)
    with pytest.raises(InvalidInputError, match="steps"):
        gibbs_sweeps(network, piece(0), SHORT, 0)
    with pytest.raises(InvalidInputError, match="shape"):
        arrangement_of(network, np.zeros((2, N_ROLL_PITCHES), dtype=np.bool_), piece(9), SHORT)
