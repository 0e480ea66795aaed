"""What every test stands on: no network, a home of its own for caches, seeded randomness."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

# The Hugging Face packages read these once, at their first import: they are set before any test module is.
_CACHE = tempfile.mkdtemp(prefix="music_evals_tests_")
atexit.register(shutil.rmtree, _CACHE, ignore_errors=True)
os.environ.update(
    HF_HOME=_CACHE,
    HF_HUB_OFFLINE="1",
    HF_DATASETS_OFFLINE="1",
    HF_EVALUATE_OFFLINE="1",
    HF_HUB_DISABLE_TELEMETRY="1",
    HF_UPDATE_DOWNLOAD_COUNTS="0",
    HF_HUB_DISABLE_PROGRESS_BARS="1",
    GRADIO_ANALYTICS_ENABLED="False",
    MPLBACKEND="Agg",
)
for _variable in ("HF_DATASETS_CACHE", "HF_METRICS_CACHE", "HF_EVALUATE_CACHE", "HF_MODULES_CACHE", "HF_HUB_CACHE"):
    os.environ.pop(_variable, None)

import hypothesis  # noqa: E402  (after the environment)
import numpy as np  # noqa: E402
import pytest  # noqa: E402

hypothesis.settings.register_profile("dev", max_examples=50, deadline=None)
hypothesis.settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator with a fixed seed, fresh for each test."""
    return np.random.default_rng(20_220_711)


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture
def in_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run the test from the root of the repository, as `./metrics/<name>` asks for."""
    monkeypatch.chdir(root)
    return root
