"""How the rolls of the page are scrolled."""

from __future__ import annotations

from typing import Any


def test_a_roll_scrolls_only_to_what_is_not_seen(call: Any) -> None:
    rolls = call("rolls")
    assert [rolls("scrolled", x, 100, 300) for x in (50, 100, 400, 401)] == [30, 100, 100, 381]
