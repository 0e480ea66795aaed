from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from benchmarks.beat_tracker.network import (  # noqa: E402
    FRAME_RATE_HZ,
    BeatTracker,
    Clips,
    augment,
    export_weights,
    make_targets,
    train,
)

from music_evals.errors import CorruptRecordsError  # noqa: E402 - after the skip


@pytest.fixture
def clips() -> Clips:
    """Six clips of 200 frames in which all bands rise at every beat."""
    rng = np.random.default_rng(0)
    levels = 0.1 * rng.random((6, 200, 84))
    beats = [0.2 + 0.5 * np.arange(8) for _ in range(6)]
    for clip, times in zip(levels, beats, strict=True):
        for frame in np.round(times * FRAME_RATE_HZ).astype(int):
            clip[frame : frame + 4] += 0.6
    return Clips(levels.astype(np.float16), beats, [times[::4] for times in beats])


def test_targets_by_hand() -> None:
    # a beat at frame 3.5: half a frame from 3 and 4, one and a half from 2 and 5
    targets = make_targets(np.array([3.5 / FRAME_RATE_HZ]), 8)
    np.testing.assert_allclose(targets, [0, 0, 0.25, 0.75, 0.75, 0.25, 0, 0], atol=1e-6)


def test_targets_outside_of_the_clip_are_left_out() -> None:
    assert not make_targets(np.array([20 / FRAME_RATE_HZ]), 8).any()


def test_augmentation_stretches_levels_and_times_alike(clips: Clips) -> None:
    clip, beats = clips.levels[0].astype(np.float32), clips.beats[0]
    factors = set()
    for seed in range(12):
        varied, factor = augment(clip.copy(), np.random.default_rng(seed))
        factors.add(factor)
        assert varied.shape == clip.shape
        assert 0 <= varied.min() <= varied.max() <= 1
        rises = np.maximum(np.diff(varied, axis=0), 0).sum(axis=1)
        for time in beats * factor:
            frame = round(time * FRAME_RATE_HZ)
            if 3 < frame < 195:
                near = rises[frame - 3 : frame + 2].max()
                assert near > 3 * np.median(rises)
    assert len(factors) > 3


@pytest.mark.slow
def test_training_goes_on_where_it_was_cut_and_ends_the_same(clips: Clips, tmp_path: Path) -> None:
    def run(folder: Path, cut: int | None) -> list[dict[str, float]]:
        class CutError(Exception):
            pass

        def stop(row: dict[str, float]) -> None:
            if row["epoch"] == cut:
                raise CutError

        torch.manual_seed(1)
        model = BeatTracker(width=4, n_layers=3)
        options = {"n_epochs": 3, "batch_size": 3, "seed": 5}
        if cut:
            with pytest.raises(CutError):
                train(model, clips, clips, folder, report=stop, **options)  # type: ignore[arg-type]
            model = BeatTracker(width=4, n_layers=3)
        return train(model, clips, clips, folder, **options)  # type: ignore[arg-type]

    whole, resumed = run(tmp_path / "a", None), run(tmp_path / "b", 2)
    assert [row["epoch"] for row in resumed] == [1, 2, 3]
    for one, other in zip(whole, resumed, strict=True):
        assert one["train_loss"] == other["train_loss"]
        assert one["validation_loss"] == other["validation_loss"]
    assert whole[-1]["validation_loss"] < whole[0]["validation_loss"]


def test_a_damaged_checkpoint_is_named(clips: Clips, tmp_path: Path) -> None:
    (tmp_path / "checkpoint.safetensors").write_bytes(b"no tensors")
    with pytest.raises(CorruptRecordsError, match="checkpoint"):
        train(BeatTracker(width=4, n_layers=2), clips, clips, tmp_path)


def test_exported_weights_are_the_networks_in_half_precision(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    model = BeatTracker(width=4, n_layers=2)
    export_weights(model, tmp_path / "w.safetensors")
    written = load_file(tmp_path / "w.safetensors")
    assert set(written) == set(model.state_dict())
    for name, value in model.state_dict().items():
        assert written[name].dtype == np.float16
        np.testing.assert_allclose(written[name], value.numpy(), rtol=1e-3, atol=1e-6)
