"""Arguments and help of all verbs and steps."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from music_evals import cli
from music_evals.cli.parser import Parser
from music_evals.cli.verbs import build_parser

LONGEST_HELP = 120
"""Lines."""


def parsers(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Parser]]:
    assert isinstance(parser, Parser), words
    yield words, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from parsers(inner, (*words, name))


ALL = dict(parsers(build_parser()))
LEAVES = {words: parser for words, parser in ALL.items() if parser.get_default("command") and words != ("benchmark",)}
LEAVES = {words: parser for words, parser in LEAVES.items() if not any(other[:-1] == words for other in ALL)}


def least(parser: Parser, without: str = "") -> list[str]:
    """Return the fewest arguments that a parser takes, but for one option."""
    given = []
    for action in parser._actions:
        if action.required and action.dest != without:
            value = str(next(iter(action.choices))) if action.choices else "1"
            given += [*action.option_strings[-1:], value]
    return given


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the last line that is said of arguments which the parser refuses."""
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err.splitlines()[-1]


def test_there_are_verbs_and_steps() -> None:
    assert len(ALL) > 45
    assert len(LEAVES) > 35


@pytest.mark.parametrize("columns", ["80", "72", "120"])
def test_help_fits_the_terminal(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for words, parser in ALL.items():
        lines = parser.format_help().splitlines()
        wide = [line for line in lines if len(line) > int(columns) and " " in line.strip()]
        assert not wide, (words, wide)
        if columns == "80":
            assert max(map(len, lines)) <= 80, words
            assert len(lines) <= LONGEST_HELP, words
            assert all(len(line) <= 80 for line in parser.format_usage().splitlines()), words


def test_examples_stay_the_commands_that_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    checked = 0
    for words, parser in ALL.items():
        for line in re.sub(r" *\\\n *", " ", parser.epilog or "").splitlines():
            command = line.strip().partition("    # ")[0]
            if "music-evals " in command:
                shown = re.sub(r" *\\\n *", " ", parser.format_help())
                assert shlex.split(command) in [shlex.split(one) for one in shown.splitlines() if "music-" in one], (
                    words
                )
                checked += 1
    assert checked > 100


def test_what_is_missing_and_what_is_unknown_are_said_together(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(["preserve", "--reference", "a", "--estimte", "b"], capsys)
    assert "--out" in said.partition("unknown")[0]
    assert "unknown option --estimte, did you mean --estimate?" in said
    said = refused(["inpainting", "--seeds", "many", "--dateset=jsb_chorales"], capsys)
    assert "--seeds" in said
    assert "did you mean --dataset?" in said
    said = refused(["caimap", "lexicon", "build", "a", "b", "--colunm", "x"], capsys)
    for option in ("--column", "--group", "--dimension", "--source", "--licence", "--colunm"):
        assert option in said
    assert "foo bar" in refused(["preserve", "--out", "x", "foo", "bar"], capsys)
    assert "foo" not in refused(["preserve", "--out", "x", "--nowhere-near", "foo"], capsys)
    assert "--jsn" in refused(["--jsn"], capsys)


def test_every_verb_says_both(capsys: pytest.CaptureFixture[str]) -> None:
    for words, parser in LEAVES.items():
        given = least(parser)
        said = refused([*words, *given, "--not-an-option"], capsys)
        assert "unknown option --not-an-option" in said, words
        if given:
            said = refused([*words, "--not-an-option"], capsys)
            assert "required" in said, words
            assert "--not-an-option" in said, words


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["presrve"], "preserve"),
        (["inpaint"], "inpainting"),
        (["listening_test", "build"], "listening-test"),
        (["caimap", "initt"], "init"),
        (["caimap", "lexicon", "bbuild"], "build"),
        (["leaderboard", "bild"], "build"),
        (["list", "metricks"], "metrics"),
        (["completion", "zhs"], "zsh"),
        (["inpainting", "--measures", "fixd", "--out", "x"], "fixed"),
    ],
)
def test_the_nearest_name_is_offered(arguments: list[str], near: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert re.search(rf"did you mean ({near}|.* or {near})\b", refused(arguments, capsys))


def test_a_name_that_is_near_to_none_gets_all(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(["xyzzy"], capsys)
    assert all(words[0] in said for words in ALL if words)


def test_no_file_can_be_the_folder_of_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("held")
    checked = 0
    for words, parser in LEAVES.items():
        if not any(action.dest == "out" for action in parser._actions):
            continue
        for out, what in {
            str(tmp_path / "file"): "is a file",
            str(tmp_path / "file" / "below"): "is a file",
            str(tmp_path / ("long/" * 1000)): "too long",
            str(tmp_path / ("x" * 300)): "too long",
        }.items():
            assert cli.main([*words, *least(parser, without="out"), "--out", out]) == 2, words
            err = capsys.readouterr().err
            assert err.startswith("music-evals: error: --out "), (words, err)
            assert what in err
            assert len(err) < 1000
        checked += 1
    assert checked > 15
    assert (tmp_path / "file").read_text() == "held"
