"""Strategies and the oracle that the tests of the NoteSeq metrics share."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

PLAIN = Path(__file__).parents[2] / "benchmarks" / "inpainting_metrics" / "plain.py"


@pytest.fixture(scope="session")
def plain() -> ModuleType:
    """The metrics in plain Python, note by note: benchmarks/inpainting_metrics/plain.py."""
    spec = importlib.util.spec_from_file_location("plain_inpainting_metrics", PLAIN)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
