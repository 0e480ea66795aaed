"""How all verbs and steps read their arguments and show their help."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

from music_evals.errors import UnknownNameError

SHOWN_OPTIONS = 6  # A usage line names all options of a verb that has no more, else those that are required


class Parser(argparse.ArgumentParser):
    """A parser that names what is missing and what is unknown together, each with the nearest name."""

    later: Callable[[Parser], object] | None = None  # adds the options, when they are first needed
    _given: Sequence[str] = ()

    def complete(self) -> None:
        """Add the options that wait until the verb is parsed or shown, so that no other verb's settings are loaded."""
        later, self.later = self.later, None
        if later is not None:
            later(self)

    def format_help(self) -> str:
        """Return the help, with all options."""
        self.complete()
        return super().format_help()

    def parse_known_args(self, args: Iterable[str] | None = None, namespace: Any = None) -> Any:
        """Parse, and refuse what is unknown here: the verb knows its own options, and the command does not."""
        self.complete()
        self._given = list(sys.argv[1:] if args is None else args)
        options, unknown = super().parse_known_args(self._given, namespace)
        if unknown:
            pairs = zip(["", *unknown], unknown, strict=False)  # a word after an unknown option is its value
            words = [word for before, word in pairs if word[:1] != "-" and (before[:1] != "-" or "=" in before)]
            self.error(f"unexpected: {' '.join(words)}" if words else "")
        return options, unknown

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and all that is unknown beside, and exit with code 2."""
        super().error("; ".join(filter(None, [message, *self._unknown()])))

    def _unknown(self) -> Iterator[str]:
        known = self._option_string_actions
        has_verbs = any(isinstance(action, argparse._SubParsersAction) for action in self._actions)
        for word in self._given:
            name = word.partition("=")[0]
            if word == "--" or (has_verbs and not word.startswith("-")):
                return  # what follows are names of files, or belongs to the verb
            option = len(word) > 1 and word.startswith("-") and " " not in word
            if not option or self._negative_number_matcher.match(word) or any(each.startswith(name) for each in known):
                continue
            near = difflib.get_close_matches(name, known, n=1)
            yield f"unknown option {name}" + (f", did you mean {near[0]}?" if near else "")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            kind = "/".join(action.option_strings) or str(action.metavar or action.dest).lower()
            raise argparse.ArgumentError(None, str(UnknownNameError(kind, str(value), map(str, action.choices))))


class HelpFormatter(argparse.HelpFormatter):
    """Help as wide as the terminal: paragraphs stay apart, and examples stay commands that can be copied."""

    def add_usage(
        self, usage: str | None, actions: Iterable[argparse.Action], groups: Iterable[Any], prefix: str | None = None
    ) -> None:
        """Add the usage; of many options only those that are required."""
        actions = list(actions)
        if sum(bool(action.option_strings) for action in actions) > SHOWN_OPTIONS:
            others = argparse.Action([], "options", nargs="*", metavar="OPTION")
            needed = [action for action in actions if action.required or not action.option_strings]
            actions, groups = [*needed, others], ()
        super().add_usage(usage, actions, groups, prefix)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = re.sub(r"(?<! ) *\\\n *", " ", text.strip("\n")).split("\n\n")
        wrapped = []
        for part in paragraphs:
            if "\n  " not in part:  # prose; else a heading with commands
                lines = textwrap.wrap(
                    part, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
                )
            else:
                lines = []
                for line in part.split("\n"):
                    if len(line) <= width:
                        lines.append(line)
                        continue
                    command, _, comment = line.strip().partition("    # ")
                    lines += textwrap.wrap(comment, width, initial_indent="  # ", subsequent_indent="  # ")
                    lines += _command(command, width)
            wrapped.append("\n".join(lines))
        return "\n\n".join(wrapped)


def _command(command: str, width: int) -> Iterator[str]:
    """Yield the lines of a command that is too long for one, broken before options and never within quotes."""
    words = re.findall(r"""(?:"[^"]*"|'[^']*'|[^\s"'])+""", command)
    parts: list[str] = []
    for word in words:
        if parts and parts[-1].startswith("-") and " " not in parts[-1] and not word.startswith("-"):
            parts[-1] += f" {word}"  # an option and its value
        else:
            parts.append(word)
    line = " "
    for part in parts:
        if len(line) + len(part) + 3 > width:
            yield f"{line} \\"
            line = "     "
        line += f" {part}"
    yield line
