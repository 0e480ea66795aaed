"""Golden values name their source: a number without one could be our own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conformance.rules import over, place, text_of

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
FILES = sorted(path for path in GOLDEN.rglob("*.json") if path.parent.name != "digests")  # of our own: tools/digests.py
ARRAYS = sorted((GOLDEN / "parity").glob("*.safetensors"))


def check_content(name: str, text: str) -> None:
    """Raise AssertionError unless the file is JSON with a `source` that tells more than a word, and with values."""
    content = json.loads(text)
    assert isinstance(content, dict), f"{name}: expected an object with a field `source`"
    source = content.get("source")
    assert source, f"{name}: no field `source`; tell where the numbers come from"
    source = source if isinstance(source, str) else json.dumps(source)
    assert len(source.split()) >= 3, f"{name}: the source {source!r} is too short to be found again"
    assert "music_evals" not in source, f"{name}: our own code is no source of expected values"
    assert set(content) - {"source"}, f"{name}: no values beside `source`"


@over(FILES, place)
def test_golden_values_name_their_source(path: Path) -> None:
    check_content(path.name, text_of(path))


@over(FILES, place)
def test_golden_values_are_listed(path: Path) -> None:
    assert f"`{path.name}`" in text_of(GOLDEN / "README.md")


def test_golden_values_are_json() -> None:
    files = [path for path in GOLDEN.rglob("*") if path.is_file() and path not in ARRAYS]
    others = [path.name for path in files if path.suffix not in {".json", ".md"}]
    assert not others, f"values belong into JSON with a `source`: {others}"


@over(ARRAYS, place)
def test_recorded_arrays_name_the_authors(path: Path) -> None:
    assert path.stat().st_size <= 300_000
    with path.open("rb") as file:
        head = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    assert head["__metadata__"]["repository"].count("/") == 1
    assert len(head["__metadata__"]["commit"]) >= 7


@over(
    ["[1, 2]", '{"values": [1]}', '{"source": {}, "values": [1]}', '{"source": "paper", "values": [1]}',
     '{"source": "output of music_evals 0.1", "values": [1]}', '{"source": "MUSIB, table 3, column 2"}'],
)  # fmt: skip
def test_a_file_without_a_source_is_refused(content: str) -> None:
    with pytest.raises(AssertionError):
        check_content("golden.json", content)


def test_a_file_with_a_source_passes() -> None:
    check_content("golden.json", '{"source": "MUSIB, table 3, column 2", "values": [0.832]}')
