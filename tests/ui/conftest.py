"""What tests of the pages share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.zero_gpu import ZeroGPU, zero_gpu_pages


@pytest.fixture
def zero_gpu() -> Iterator[ZeroGPU]:
    """The pages as a Space on a GPU imports them; import them in the test."""
    with zero_gpu_pages() as made:
        yield made
