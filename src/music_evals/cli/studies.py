"""What all studies with people share on the command line: their texts, how they are served, what was sent."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from music_evals.cli.console import say, to_stdout
from music_evals.cli.options import add_verb

if TYPE_CHECKING:
    from music_evals.studies.folders import Introduction

SECRET_VARIABLE = "MUSIC_EVALS_STUDY_SECRET"  # noqa: S105  (its name)
"""Environment variable that holds the organiser's secret."""

_SERVE_HELP = f"""\
Serve a study on this machine: its page at /, and at /organiser how far it is, all that was sent as one file, and
withdrawal. Who opens the page gets the plan that the fewest have; what is acknowledged is on the disk, in
STUDY/submissions.

With --hub OWNER/NAME the study is fetched to STUDY from that private data set, and what is acknowledged is committed
to it too, as a Space needs whose disk goes with it.

The secret of the organiser's page is taken from --secret-file or the environment variable {SECRET_VARIABLE}; without
either one is made and printed once. The same page needs no server: put STUDY/page on any web site, give each
participant a number (page/?slot=3), and let them send the file that they get at the end.
"""
_INVITE_HELP = """\
Print links to a study, one a person; only hashes are stored, in STUDY/submissions. Each joins once: who opens it again
has the same plan, in another browser from its start. From the first one on nobody joins without. Who notes whom a link
was sent to can tell whose answers are whose.
"""


def add_introduction_options(step: Any) -> None:
    """Add what participants read first."""
    texts = step.add_argument_group("what participants read first")
    texts.add_argument("--study", default="study", metavar="NAME", help="name of the study: a-z, 0-9, - and _")
    texts.add_argument("--title", default="A study on music made by computers", help="(default: %(default)s)")
    texts.add_argument("--contact", metavar="TEXT", help="who leads the study and how to reach them")
    texts.add_argument(
        "--texts", metavar="FILE", help="YAML with title, consent and instructions, in place of our texts"
    )


def introduction_of(options: argparse.Namespace, kind: str) -> Introduction:
    """Return the texts that the options name."""
    from music_evals.errors import InvalidInputError
    from music_evals.studies.folders import default_introduction, read_introduction

    if options.texts:
        return read_introduction(options.texts)
    if not options.contact:
        raise InvalidInputError("name who leads the study and how to reach them, with --contact, or give own --texts")
    return default_introduction(kind, options.title, options.contact)


def add_serve(steps: Any, verb: str) -> None:
    """Add the step ``serve``."""
    examples = (
        f"examples:\n  music-evals {verb} serve study\n  music-evals {verb} serve study --host 0.0.0.0 --port 80\n"
    )
    step = add_verb(steps, "serve", _serve, "serve a study", _SERVE_HELP, examples)
    step.add_argument("folder", metavar="STUDY", help="folder of the study")
    step.add_argument("--host", default="127.0.0.1", help="where to listen (default: %(default)s, this machine alone)")
    step.add_argument("--port", type=int, default=7860, help="(default: %(default)s)")
    step.add_argument("--hub", metavar="OWNER/NAME", help="private data set that holds the study and gets what is sent")
    step.add_argument("--secret-file", metavar="FILE", help="file that holds the organiser's secret")
    example = f"example:\n  music-evals {verb} invite study 20 --url https://example.org\n"
    step = add_verb(steps, "invite", _invite, "links that join a study once", _INVITE_HELP, example)
    step.add_argument("folder", metavar="STUDY", help="folder of the study")
    step.add_argument("count", type=int, metavar="N", help="how many people")
    step.add_argument("--url", default="http://127.0.0.1:7860", help="where the study is served (default: %(default)s)")


def _invite(options: argparse.Namespace) -> int:
    from music_evals.studies.folders import read_study_folder
    from music_evals.studies.storage import SlotBook

    study = read_study_folder(options.folder)
    codes = SlotBook(study.submissions, len(study.plans)).invite(options.count)
    with to_stdout():
        print("\n".join(f"{options.url.rstrip('/')}/#code={code}" for code in codes))
    return 0


def _serve(options: argparse.Namespace) -> int:
    from music_evals.errors import NoDataError
    from music_evals.studies.folders import read_study_folder
    from music_evals.studies.storage import SubmissionStore, new_token
    from music_evals.ui.studies.server import serve

    mirror = None
    if options.hub:
        from music_evals.hub.mirrors import HubMirror

        mirror = HubMirror(options.hub)
        mirror.fetch(options.folder)
    study = read_study_folder(options.folder)
    secret = os.environ.get(SECRET_VARIABLE, "")
    if options.secret_file:
        try:
            secret = Path(options.secret_file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise NoDataError(f"{options.secret_file}: cannot be read ({error.strerror})") from error
    if not secret:
        secret = new_token()
        say(f"the organiser's secret, made for this run: {secret}")
    say(f"{study.introduction.title}: http://{options.host}:{options.port}/ and /organiser; Ctrl+C ends it")
    store = SubmissionStore(study.submissions, mirror=mirror)
    serve(study, secret=secret, host=options.host, port=options.port, store=store)
    return 0
