"""YAML is read by one library, as the text means it in YAML 1.2."""

from __future__ import annotations

import pytest

from music_evals.errors import UnreadableFileError
from music_evals.yaml_files import load_yaml, packaged_yaml


def test_values_are_plain() -> None:
    values = load_yaml("a: 1e-3\nb: [true, null, '1']\nc: yes\n", "a text")
    assert values == {"a": 0.001, "b": [True, None, "1"], "c": "yes"}
    assert type(values) is dict


def test_recipes_may_say_yes_and_no() -> None:
    text = "{a: yes, b: No, c: off, d: true, e: none, f: onset, g: y, h: 'no'}"
    expected = {"a": True, "b": False, "c": False, "d": True, "e": "none", "f": "onset", "g": "y", "h": "no"}
    assert load_yaml(text, "a text", old_booleans=True) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [("a: [1", "line 1"), ("a: 1\na: 2", "line 2"), ("!!python/object/apply:os.getcwd []", "constructor")],
)
def test_what_is_not_plain_yaml_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UnreadableFileError, match=f"the recipe cannot be read as YAML.*{reason}"):
        load_yaml(text, "the recipe")


def test_files_in_packages_are_read() -> None:
    assert set(packaged_yaml("music_evals.studies", "editing.yaml")) >= {"consent", "instructions"}
