"""The options of the verbs: most are made of the fields of a task's settings."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any

from music_evals.cli.parser import HelpFormatter
from music_evals.errors import InvalidInputError
from music_evals.options import MISSING, options_of


def add_verb(
    verbs: Any,
    name: str,
    command: Callable[[argparse.Namespace], int] | None,
    *texts: str,
    needs: Callable[[argparse.Namespace], Iterable[str]] = lambda _: (),
    options: Callable[[Any], object] | None = None,
) -> Any:
    """Add a verb, with its line in the list of all, its description and its examples as far as they are given."""
    # `needs` says which extras its options ask for, so that all that are missing are named at once. A verb with steps
    # has no command: argparse asks for a step. `options` adds the options when the verb is parsed or shown.
    about = dict(zip(("help", "description", "epilog"), texts, strict=False))
    verb = verbs.add_parser(name, formatter_class=HelpFormatter, **about)
    verb.later = options
    verb.set_defaults(command=command, verb=verb, needs=needs)
    return verb


def add_list(group: Any, flag: str, text: str, **more: Any) -> None:
    """Add an option that may be given again; its value is a list."""
    group.add_argument(flag, action="append", default=[], help=text, **more)


def add_number(group: Any, flag: str, text: str, *, default: int | None = None, **more: Any) -> None:
    """Add an option that is a whole number; its help ends with the default, unless it says it itself or has none."""
    suffix = "" if default is None or "%(default)s" in text else " (default: %(default)s)"
    group.add_argument(flag, type=int, default=default, metavar="N", help=f"{text}{suffix}", **more)


def add_options(verb: Any, settings: type, *, required: str = "") -> dict[str, Any]:
    """Add the options of a dataclass of settings, and return the groups that it names in `GROUPS`, by their keys."""
    # groups with one title are one; the empty title is the verb itself
    groups: dict[str, Any] = {}
    by_title: dict[str, Any] = {"": verb}
    options = list(options_of(settings))
    for key, title in settings.GROUPS.items():  # type: ignore[attr-defined]
        groups[key] = by_title[title] if title in by_title else verb.add_argument_group(title)
        by_title[title] = groups[key]
        for option in (each for each in options if each.group == key):
            more: dict[str, Any] = {"metavar": option.metavar, "choices": option.choices, "nargs": option.nargs}
            default = None if option.default is MISSING else option.default
            if option.kind == "bool | None":
                more["action"] = argparse.BooleanOptionalAction
            elif isinstance(default, bool):
                more["action"] = "store_false" if default else "store_true"
            elif option.kind.startswith(("Sequence", "Mapping")):
                default = list(default or ())
                more["action"] = None if option.nargs else "append"
            elif default == ():  # given as one text
                default = None
            if match := re.search(r"\b(int|float)\b", option.kind):
                more["type"] = {"int": int, "float": float}[match[1]]
                more["metavar"] = option.metavar or ("N" if match[1] == "int" else None)
            if option.flag.startswith("-"):
                needed = option.name == required or option.default is MISSING
                more |= {"dest": option.name, "required": needed, "default": default}
            given = {name: value for name, value in more.items() if value is not None}
            groups[key].add_argument(option.flag, help=option.text, **given)
    return groups


def add_score_options(verb: Any, task: str) -> None:
    """Add the options of a benchmark of scores whose verb is run by `console.run_scores`."""
    from music_evals.benchmark.run import settings_of

    add_output_options(add_options(verb, settings_of(task))["output"], published="")


def from_options(options: argparse.Namespace, make: Callable[..., Any], **more: Any) -> Any:
    """Make settings, or call a function, with the options that are its parameters; `more` are those that need work."""
    names = inspect.signature(make).parameters
    return make(**{**{key: value for key, value in vars(options).items() if key in names}, **more})


def in_options(text: str, verb: argparse.ArgumentParser) -> str:
    """Return a message of the library with the options of a verb in place of the settings that it names."""
    # The library marks settings so: `` `limit` ``, `` `strict=False` ``, `` `empty='zero'` ``.
    actions = {action.dest: action for action in verb._actions if action.option_strings}

    def option(match: re.Match[str]) -> str:
        name, value = match["name"], match["value"]
        if name not in actions:
            return match[0]
        action = actions[name]
        flag = action.option_strings[-1]
        if value in {"True", "False"}:
            is_set = str(action.const) == value
            return f"{match['with'] or ''}{flag}" if is_set else f"{'without' if match['with'] else 'no'} {flag}"
        reported = name if action.const is False else flag  # an option may say the opposite of its setting
        return (match["with"] or "") + " ".join(filter(None, [reported, (value or "").strip("'")]))

    return re.sub(r"(?P<with>with )?`(?P<name>[a-z_]+)(?:=(?P<value>[^`]+))?`", option, text)


def text_extra(encoder: str | None) -> list[str]:
    """Return the extra that an encoder of texts needs, if any."""
    return [] if encoder in {None, "char-ngrams"} else ["text"]


def add_confidence(group: Any) -> None:
    """Add the confidence of intervals."""
    help_ = "of the intervals (default: %(default)s)"
    group.add_argument("--confidence", type=float, default=0.95, metavar="P", help=help_)


def sizes_of(text: str, flag: str) -> list[int]:
    """Return the whole numbers in a text such as ``6,12``."""
    try:
        return [int(size) for size in text.split(",")]
    except ValueError:
        raise InvalidInputError(f"{flag} must be whole numbers with commas, got {text!r}") from None


def by_system(texts: Iterable[str], flag: str) -> dict[str, str]:
    """Return system -> place of texts such as ``zeta=folder``."""
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise InvalidInputError(f"{flag} takes SYSTEM=PLACE, such as zeta=folder, got {text!r}")
        if name in values:
            raise InvalidInputError(f"{flag} names {name} twice; give it once")
        values[name] = value
    return values


def add_writer_options(group: Any, name: str, model_help: str, *, dest: str | None = None) -> None:
    """Add the options that `writer_of` reads: which language model writes `name`, such as instructions."""
    group.add_argument(f"--{name}-model", dest=dest, metavar="ID", help=model_help)
    group.add_argument(f"--{name}-endpoint", metavar="URL", help="OpenAI-compatible address, up to /v1")
    help_ = "environment variable that holds its key (default: no key)"
    group.add_argument("--api-key-env", metavar="VARIABLE", help=help_)


def writer_of(options: argparse.Namespace, name: str, model: str | None) -> dict[str, Any] | None:
    """Return which language model writes `name`, such as instructions; None where none is named."""
    given = {"model": model, "endpoint": getattr(options, f"{name}_endpoint"), "api_key_env": options.api_key_env}
    named = {key: value for key, value in given.items() if value is not None}
    if named and "model" not in named:
        raise InvalidInputError(f"--{name}-endpoint and --api-key-env go with --{name}-model; give that too")
    return named or None


def add_output_options(
    where: Any,
    text: str = "print results.json in place of the tables",
    *,
    picture: tuple[str, str] | None = None,
    published: str | None = None,
) -> None:
    """Add ``--json``, a drawing as (option, file), see `why_not_drawn`, and ``--published`` with what it prints too."""
    where.add_argument("--json", action="store_true", help=text)
    if picture is not None:
        name, file = picture
        insist = f"write {file}, or fail where matplotlib is not installed; by default it is left out there"
        where.add_argument(f"--{name}", action="store_true", default=None, help=insist)
        where.add_argument(f"--no-{name}", action="store_false", dest=name, default=None, help=f"write no {file}")
    if published is not None:
        help_ = f"print {published}the published results of others too; table.md always has them"
        where.add_argument("--published", action="store_true", help=help_)
