"""Options are written once, at the fields of settings, and the flags of the verbs are made of them."""

from __future__ import annotations

import argparse
import dataclasses
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import ClassVar

import pytest

from music_evals.benchmark.run import settings_of
from music_evals.cli.listing import VERBS
from music_evals.cli.options import add_options, from_options
from music_evals.cli.verbs import build_parser
from music_evals.options import MISSING, option, options_of


@dataclasses.dataclass(frozen=True, kw_only=True)
class Base:
    out: str = option(MISSING, "folder", group="output", metavar="DIR")
    seed: int = option(0, "of tests")
    limit: int | None = option(None, "first N")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(Base):
    files: Sequence[str] = option((), "scores", flag="files", nargs="*")
    models: Sequence[str] = option((), "who", flag="--model")
    backends: Mapping[str, str] = option({}, "extractors")
    share: float = option(0.5, "of all (default: %(default)s)")
    strict: bool = option(False, "fail")
    report: bool = option(True, "no report", group="output")
    is_open: bool | None = option(None, "or not", flag="--open")
    names: tuple[str, ...] = option((), "with commas")
    way: str = option("one", "of two", choices=("one", "two"))
    endpoint: str | None = None

    GROUPS: ClassVar = {"how": "how", "output": "where"}
    TEXTS: ClassVar = {"seed": "of everything", "limit": None}


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_options(parser, Settings)
    return parser.parse_args(words)


def test_defaults_are_those_of_the_settings() -> None:
    settings = from_options(parsed("--out", "x"), Settings, names=())
    assert dataclasses.asdict(settings) == dataclasses.asdict(Settings(out="x", files=[], models=[], backends=[]))


def test_values_have_the_types_of_their_fields() -> None:
    words = [
        "a",
        "b",
        "--model",
        "m",
        "--model",
        "n",
        "--share",
        "1",
        "--strict",
        "--no-report",
        "--no-open",
        "--seed",
        "3",
        "--way",
        "two",
        "--out",
        "x",
    ]
    settings = from_options(parsed(*words), Settings, names=("given",), backends={})
    expected = Settings(
        out="x", files=["a", "b"], models=["m", "n"], share=1.0, strict=True, report=False, is_open=False, seed=3,
        way="two", names=("given",),
    )  # fmt: skip
    assert settings == expected


def test_what_is_inherited_may_say_something_else_or_be_none() -> None:
    texts = {shown.name: shown.text for shown in options_of(Settings)}
    assert texts["seed"] == "of everything"
    assert "limit" not in texts
    assert "endpoint" not in texts
    with pytest.raises(SystemExit):
        parsed("--out", "x", "--limit", "3")


@pytest.mark.parametrize("task", sorted(VERBS))
def test_the_verb_of_a_task_has_every_option_of_its_settings(task: str) -> None:
    settings = settings_of(task)
    verbs = next(action.choices for action in build_parser()._actions if isinstance(action.choices, dict))
    flags = set()
    for verb in verbs.values():
        verb.complete()
        if verb.description:
            flags |= {(action.dest, *action.option_strings) for action in verb._actions}
    shown = [one for one in options_of(settings) if one.group in settings.GROUPS]  # type: ignore[attr-defined]
    assert {(one.name, one.flag) for one in shown} <= flags
    assert all(one.text for one in shown)


def test_one_verb_does_not_load_the_settings_of_others() -> None:
    code = (
        "import sys\n"
        "from music_evals.cli.verbs import build_parser; build_parser().parse_args(['convert', 'weights'])\n"
        "print([name for name in sys.modules if name.endswith('.task')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
