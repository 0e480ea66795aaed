from __future__ import annotations

import pytest
import yaml  # noqa: TID251  (what the client of the Hub reads cards with)
from hypothesis import given
from hypothesis import strategies as st

from music_evals.errors import UnreadableFileError
from music_evals.hub.heads import read_head, replace_block, split_card

CARD = """---
# what it is
license: mit   # a remark
model-index:
- name: a
  results: []

# where it comes from
datasets: [x]
---

# Title
---
text
"""


def test_head_and_body() -> None:
    card = split_card(CARD)
    assert card.head.startswith("# what it is\n")
    assert card.body == "\n# Title\n---\ntext\n"
    assert str(card) == CARD
    assert split_card("# no head\n") == ("", "", "", "# no head\n")
    assert read_head("# no head\n") == {}


def test_a_block_is_replaced_and_nothing_else() -> None:
    filled = replace_block(CARD, "model-index", [{"name": "b", "results": [1]}])
    assert filled == CARD.replace("- name: a\n  results: []\n", "- name: b\n  results:\n  - 1\n")


def test_line_ends_stay() -> None:
    dos = CARD.replace("\n", "\r\n")
    filled = replace_block(dos, "model-index", [{"name": "b", "results": [1]}])
    assert filled == replace_block(CARD, "model-index", [{"name": "b", "results": [1]}]).replace("\n", "\r\n")
    assert replace_block("# x\r\n", "a", 1) == "---\r\na: 1\r\n---\r\n# x\r\n"


def test_a_block_that_is_missing_is_added() -> None:
    assert replace_block(CARD, "tags", ["z"]) == CARD.replace("datasets: [x]\n", "datasets: [x]\ntags:\n- z\n")
    assert replace_block("# no head\n", "tags", ["z"]) == "---\ntags:\n- z\n---\n# no head\n"


def test_a_key_on_one_line() -> None:
    assert replace_block("---\na: [1, 2]\nb: 2\n---\n", "a", 3) == "---\na: 3\nb: 2\n---\n"
    assert replace_block('---\n"a": 1\nb: 2\n---\n', "a", 3) == '---\n"a": 3\nb: 2\n---\n'


@pytest.mark.parametrize(
    ("head", "said"),
    [("a: &x 1\nb: *x\n", "write it once, as a block of lines"), ("a: 1\nb: 2\na: 3\n", 'duplicate key "a".*line 3')],
)
def test_a_block_that_others_lean_on(head: str, said: str) -> None:
    with pytest.raises(UnreadableFileError, match=said):
        replace_block(f"---\n{head}---\n", "a", 4)


def test_remarks_and_quotes_within_the_block_stay() -> None:
    card = """---
tags:
    - music
model-index:  # ours
# the first
- name: 'a'
  results:
  # from a paper
  - {note: &n no, value: 0.50}   # by hand
  - more: [ *n ]
license: mit
---
"""
    index = read_head(card)["model-index"]
    index[0]["results"].append({"value": 0.5})
    assert replace_block(card, "model-index", index) == card.replace("[ *n ]\n", "[*n]\n  - value: 0.5\n")


def test_a_byte_order_mark_or_a_blank_line_does_not_hide_the_head() -> None:
    for before in ("\ufeff", "\n", "\ufeff\r\n"):
        assert read_head(before + CARD)["license"] == "mit"
        assert replace_block(before + CARD, "license", "x") == before + replace_block(CARD, "license", "x")
    assert replace_block("\ufeff# x\n", "a", 1) == "\ufeff---\na: 1\n---\n# x\n"


@pytest.mark.parametrize("text", ["no", "y", "1e5", "12:30", "0123", "2026-11-21", "1_000", "~", "null", "<<"])
def test_text_stays_text_for_readers_of_both_versions(text: str) -> None:
    card = replace_block("# x\n", "a", [{text: text}])
    assert read_head(card) == {"a": [{text: text}]}
    assert yaml.safe_load(split_card(card).head) == {"a": [{text: text}]}


@pytest.mark.parametrize("head", ["a: [1", "- a\n- b", "just text"])
def test_heads_that_cannot_be_read(head: str) -> None:
    with pytest.raises(UnreadableFileError, match="head of the card"):
        read_head(f"---\n{head}\n---\n# x\n")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8", exclude_categories=["C"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "null", "y-z"]), inner),
    max_leaves=6,
)


@given(values, values, values)
def test_what_is_put_in_is_read_back(first: object, second: object, new: object) -> None:
    card = replace_block(replace_block("# body\n", "first", first), "second", second)
    filled = replace_block(card, "first", new)
    assert read_head(filled) == {"first": new, "second": second}
    assert yaml.safe_load(split_card(filled).head) == {"first": new, "second": second}
    assert split_card(filled).body == "# body\n"
