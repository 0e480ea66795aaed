"""How rules are held over many things."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance.rules import over


def test_whatever_breaks_a_rule_is_listed_with_what_is_wrong(tmp_path: Path) -> None:
    @over([1, 2, 3, 4], "metrics/{}".format)
    def rule(number: int, folder: Path) -> None:
        assert folder == tmp_path
        assert number != 2, "two is no number of ours"
        if number == 3:
            raise KeyError("licence")

    with pytest.raises(pytest.fail.Exception) as caught:
        rule(folder=tmp_path)
    first, *others = [line for line in str(caught.value).splitlines() if not line.startswith("assert")]
    assert first == "2 of 4 break the rule"
    assert "metrics/2: two is no number of ours" in others[0]
    assert "metrics/3: KeyError: 'licence' (line " in others[-1]
    assert others[-1].endswith("of test_rules.py)")


def test_a_rule_about_nothing_fails() -> None:
    @over([])
    def rule(_thing: object) -> None:
        pass

    with pytest.raises(pytest.fail.Exception, match="nothing that the rule is about"):
        rule()
