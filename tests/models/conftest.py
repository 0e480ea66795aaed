"""What the tests of this room share: random states of their own, and recipes of tiny networks."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture
def own_random_state() -> Iterator[None]:
    """Draw from a seed of one's own, and leave PyTorch's random state as it was."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(3)
        yield


@pytest.fixture
def write_recipe() -> Callable[..., Path]:
    """Return a function that writes the recipe of a tiny network into a folder, some sections changed."""

    def write(folder: Path, **changes: str) -> Path:
        sections = {
            "model_type": "anticipation_rnn",
            "model": "{hidden_size: 8, linear_size: 8, note_embedding_size: 4}",
            "data": "{dataset: ../data, config: tiny}",
            "training": "{batch_size: 4, cycles: [2], transpose_low: -6, transpose_high: 6, threads: 1}",
        }
        path = folder / "train.yaml"
        path.write_text("\n".join(f"{name}: {text}" for name, text in {**sections, **changes}.items()))
        return path

    return write
