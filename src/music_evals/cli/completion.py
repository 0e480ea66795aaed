"""The verb ``completion``: scripts that let a shell complete verbs, options, names and files."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from music_evals.cli.console import to_stdout
from music_evals.cli.options import add_verb

_HELP = """\
Print a script that lets a shell complete verbs, options, names and files. Names of data sets and models are those that
are found when the script is made.
"""

_EXAMPLES = """\
examples:
  source <(music-evals completion bash)
  music-evals completion bash > ~/.local/share/bash-completion/completions/music-evals
  music-evals completion zsh > ~/.zfunc/_music-evals    # in ~/.zshrc: fpath+=~/.zfunc; autoload -Uz compinit; compinit
  music-evals completion tcsh > ~/.music-evals.csh      # in ~/.tcshrc: source ~/.music-evals.csh
"""

SHELLS = ("bash", "zsh", "tcsh")


def add(verbs: Any, root: argparse.ArgumentParser) -> None:
    """Add the verb ``completion`` of the command that `root` parses."""
    verb = add_verb(verbs, "completion", _run, "let a shell complete commands", _HELP, _EXAMPLES)
    verb.add_argument("shell", choices=SHELLS, help="which shell")
    verb.set_defaults(root=root)


def _run(options: argparse.Namespace) -> int:
    import shtab

    names = _names()
    for verb in _parsers(options.root):
        for action in verb._actions:
            kind = KIND_OF.get(action.dest, action.dest)
            completer: Mapping[str, Any] = {}
            if action.nargs == 0 or action.choices or action.metavar == "ORG/NAME":  # nobody asks for what the Hub has
                continue
            if kind in names:
                listed = f"({' '.join(names[kind])})"
                completer = {"bash": f"_music_evals_{kind}", "zsh": f"_music_evals_{kind}", "tcsh": listed}
            elif action.metavar in FOLDERS:
                completer = shtab.DIRECTORY
            elif action.metavar in FILES or action.dest in POSITIONAL:
                completer = shtab.FILE
            if completer:
                action.complete = completer  # type: ignore[attr-defined]  # where shtab looks
    functions = (f"_music_evals_{kind}() {{ {_body(options.shell, kind, names[kind])}; }}" for kind in names)
    preamble = "" if options.shell == "tcsh" else "\n".join(functions)  # which has no functions
    script = shtab.complete(options.root, options.shell, preamble=preamble)
    with to_stdout():
        print(script)
    return 0


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser and those of its verbs and steps, with all options."""
    parser.complete()  # type: ignore[attr-defined]  # of `Parser`
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in dict.fromkeys(action.choices.values()):
                yield from _parsers(inner)


def _names() -> dict[str, list[str]]:
    """Return what is completed by name: kind -> names."""
    from music_evals.metrics.arrays import VARIANTS
    from music_evals.metrics.catalogue import AUXILIARY, PRESERVATION_METRICS
    from music_evals.protocols import BASELINES
    from music_evals.repositories import DATASETS, HUB_FOLDERS, MODELS, folders

    def plain(kind: str) -> list[str]:
        return sorted(name for name in folders(kind) if re.fullmatch(r"[\w.-]+", name))  # no code for the shell

    return {
        "dataset": plain(DATASETS),
        "model": plain(MODELS),
        "folder": [f"{kind}/{name}" for kind in HUB_FOLDERS for name in plain(kind)],
        "metrics": list(PRESERVATION_METRICS),
        "companions": ["all", "none", *AUXILIARY],
        "baselines": ["all", "none", *BASELINES],
        "variant": list(VARIANTS),
    }


LISTS = {"metrics", "companions", "baselines"}  # kinds of which several are given, with commas
CLOSED = {"variant"}  # kinds where nothing but a name will do; the others may be files too
KIND_OF = {"models": "model", "folders": "folder"}
FOLDERS, FILES = {"DIR"}, {"FILE", "PATH", "[NAME=]PATH", "[NAME=]FILE", "RESULTS"}
POSITIONAL = {"recipe", "folder"}


def _body(shell: str, kind: str, names: Iterable[str]) -> str:
    """Return what a function of bash or zsh does to complete a name."""
    listed = " ".join(names)
    if shell == "bash":
        if kind in LISTS:  # what stands before the last comma is kept
            return f'compgen -P "${{1%"${{1##*,}}"}}" -W "{listed}" -- "${{1##*,}}"'
        return f'compgen -W "{listed}" -- "$1"' + ("" if kind in CLOSED else '; compgen -f -- "$1"')
    if kind in LISTS:
        return f"_values -s , {kind} {listed}"
    return (
        f"_values {kind} {listed}" if kind in CLOSED else f"_alternative 'names:{kind}:({listed})' 'files:file:_files'"
    )
