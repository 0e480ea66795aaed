"""What the tests of the audio room share."""

from __future__ import annotations

import numpy as np
import pytest

from .sounds import triads


@pytest.fixture(scope="session")
def song() -> np.ndarray:
    """16 s of `triads` at 22,050 Hz."""
    return triads(16)
