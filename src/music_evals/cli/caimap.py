"""The verb ``caimap``: the annotation platform, from an empty study to its pages."""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from music_evals.cli.console import say, to_stdout
from music_evals.cli.options import add_verb
from music_evals.cli.parser import HelpFormatter
from music_evals.errors import InvalidInputError, NoDataError
from music_evals.files import private_folder

PASSWORD_VARIABLE = "MUSIC_EVALS_CAIMAP_PASSWORD"  # noqa: S105  (its name)
"""Environment variable that holds the password of a study's first account."""

_HELP = """\
Annotate songs: structure by two people and an inspector, descriptions by a professional and an amateur, assurance at
each stage. A study is a folder with its database and its recordings; --database keeps it in PostgreSQL instead.
"""

_EXAMPLES = f"""\
examples:
  music-evals caimap serve demo_study --demo
  {PASSWORD_VARIABLE}=... music-evals caimap init my_study
  music-evals caimap import my_study songs.jsonl --audio recordings --licence CC-BY-4.0
  music-evals caimap import my_study songs.jsonl --audio recordings --prepared results/prepared
  music-evals caimap serve my_study --host 0.0.0.0 --port 80 --proxy 192.0.2.7
  music-evals caimap lexicon build my_study captions.csv --column aspect_list --group professional \\
      --dimension instrumentation --source "MusicCaps, commit ..." --licence CC-BY-SA-4.0
  music-evals caimap report my_study --out results/agreement --export my_data
  music-evals caimap import my_study caimd --finished --licence Apache-2.0
  music-evals caimap export my_study --out my_data
  music-evals caimap publish my_study my_lab/songs
  music-evals caimap simulate --share 0.1 --share 0.4
  music-evals caimap backup my_study copy_of_my_study
"""


def add(verbs: Any) -> None:
    """Add the verb ``caimap``."""
    verb = add_verb(verbs, "caimap", _serve, "annotate songs", _HELP, _EXAMPLES)
    steps = verb.add_subparsers(title="steps", required=True, metavar="STEP")
    step = _step(steps, "init", _init, "make a study, and the account of its administrator")
    step.add_argument("--name", default="admin", help="of the administrator's account (default: %(default)s)")
    step.add_argument(
        "--seed", type=int, help="of the order of songs and of the sample (default: one that is drawn and kept secret)"
    )
    step.add_argument("--share", type=float, default=0.2, help="of descriptions that are scored (default: %(default)s)")
    step.add_argument("--currency", default="", help="of what is paid, such as CNY, shown beside the amounts")
    step = _step(steps, "import", _import, "take songs in, all of them or none")
    step.add_argument("table", help="JSON Lines with id, lines and audio each; with --finished a data set as CaiMD")
    step.add_argument("--audio", metavar="DIR", help="folder of the recordings, which are copied")
    step.add_argument("--finished", action="store_true", help="songs that were annotated elsewhere, without recordings")
    step.add_argument("--config", default="demo", help="of the data set (default: %(default)s)")
    step.add_argument("--split", default="test", help="of the data set (default: %(default)s)")
    step.add_argument("--licence", default="", help="of the songs whose row names none; of all with --finished")
    step.add_argument("--prepared", metavar="DIR", help="what prepare wrote: lines, rhymes, clusters and themes")
    step = _step(steps, "serve", _serve, "serve the pages of a study")
    step.add_argument("--demo", action="store_true", help="make the demo study first, if the folder is empty")
    step.add_argument("--host", default="127.0.0.1", help="where to listen (default: %(default)s, this machine alone)")
    step.add_argument("--port", type=int, default=7860, help="(default: %(default)s)")
    step.add_argument("--address", metavar="URL", help="https://... by which people reach it through a proxy")
    step.add_argument(
        "--proxy", action="append", default=[], dest="proxies", metavar="ADDRESS",
        help="address or network of a proxy in front, whose word is taken on the address and scheme of a request; "
        "may be repeated (default: nobody's)",
    )  # fmt: skip
    step = _step(steps, "export", _export, "write the finished songs as a data set")
    step.add_argument("--out", required=True, metavar="DIR", help="a new or empty folder")
    step.add_argument("--title", default="", help="of the data set, for its card")
    _add_lexicon(steps)
    step = _step(steps, "publish", _publish, "put the finished songs on the Hub, into a private data set")
    step.add_argument("name", help="owner/name of the data set")
    step.add_argument("--title", default="", help="of the data set, for its card")
    step.add_argument("--public", action="store_true", help="make a public data set; one that is there stays as it is")
    step.add_argument("--adopt", action="store_true", help="replace a data set that does not come from a study")
    step = _step(steps, "report", _report, "how far the people of a study agree: a page, and a CSV a table")
    step.add_argument("--out", required=True, metavar="DIR", help="for agreement.html and the tables")
    step.add_argument("--language", choices=("zh", "en"), default="en", help="of the page (default: %(default)s)")
    step.add_argument("--export", metavar="DIR", help="that the step export wrote: draws what is in it, pictures.html")
    step.add_argument("--encoder", help="compare tags by meaning too, by an encoder of the verb descriptions")
    text = "what the rules catch, of simulated annotators"
    step = add_verb(steps, "simulate", _simulate, text, f"{text[0].upper()}{text[1:]}.")
    step.add_argument("--share", type=float, action="append", help="of descriptions that are scored; may be repeated")
    step.add_argument("--annotators", type=int, default=10, help="of each habit (default: %(default)s)")
    step.add_argument("--weeks", type=int, default=4, help="(default: %(default)s)")
    step.add_argument("--tasks", type=int, default=10, help="of each type, a week (default: %(default)s)")
    step.add_argument("--seed", type=int, default=0, help="(default: %(default)s)")
    step = _step(steps, "backup", _backup, "copy a study while it is served: database, recordings, key of the exports")
    step.add_argument("copy", help="a new or empty folder")
    step = _step(steps, "restore", _restore, "bring back a copy, into a folder (and database) where nothing is")
    step.add_argument("copy", help="folder of backup")


def _add_lexicon(steps: Any) -> None:
    text = "the terms that are suggested while annotators type"
    about = {"help": text, "description": f"{text[0].upper()}{text[1:]}."}
    lexicon = steps.add_parser("lexicon", formatter_class=HelpFormatter, **about)
    acts = lexicon.add_subparsers(title="acts", required=True, metavar="ACT")
    step = _step(acts, "build", _build_lexicon, "take the terms of dimensions from a file of captions")
    step.add_argument("captions", help="CSV, JSON Lines or Parquet, one caption a row")
    step.add_argument(
        "--column",
        required=True,
        help="that holds the terms: a list, or a text with commas; dots lead into columns of columns, and {dimension} "
        "stands for each dimension",
    )
    step.add_argument("--group", required=True, choices=("professional", "amateur"), help="of annotators")
    step.add_argument(
        "--dimension", required=True, action="append", dest="dimensions", metavar="NAME", help="may be given repeatedly"
    )
    step.add_argument("--source", required=True, help="of the captions: their name, and an address or a commit")
    step.add_argument("--licence", required=True, help="of the captions")
    step.add_argument("--least", type=int, default=1, help="captions that a term must stand in (default: %(default)s)")
    step.add_argument("--most", type=int, default=2000, help="terms a dimension (default: %(default)s)")


def _step(steps: Any, name: str, command: Any, text: str) -> Any:
    step = add_verb(steps, name, command, text, f"{text[0].upper()}{text[1:]}.")
    step.add_argument("study", metavar="STUDY", help="folder of the study")
    step.add_argument("--database", metavar="URL", help="of PostgreSQL, in place of a file in STUDY")
    return step


def _url(options: argparse.Namespace) -> str:
    from music_evals.caimap.storage.store import sqlite_url

    return options.database or sqlite_url(Path(options.study) / "study.db")


def _folder(options: argparse.Namespace, name: str = "") -> Path:
    study = private_folder(options.study)  # it holds what people wrote, the key of the exports, and who may sign in
    return private_folder(study / name) if name else study


def _init(options: argparse.Namespace) -> int:
    from music_evals.caimap.domain.ledger import Rates
    from music_evals.caimap.services import accounts
    from music_evals.caimap.services.study import Settings

    seed = secrets.randbits(63) if options.seed is None else options.seed  # who knows it knows what is sampled
    settings = Settings(seed=seed, share=options.share, rates=Rates(currency=options.currency))
    password = os.environ.get(PASSWORD_VARIABLE, "")
    made = "" if password else secrets.token_urlsafe(12)
    with _opened(options, new=True) as service:
        accounts.create_first_admin(service, options.name, password or made)
        service.configure(settings)
    if made:
        say(f"password of {options.name}, shown once: {made}")
    return 0


def _import(options: argparse.Namespace) -> int:
    from music_evals.caimap.exchange.importing import keep_recordings, read_finished, read_songs
    from music_evals.caimap.exchange.prepared import read_prepared
    from music_evals.caimap.services.accounts import first_administrator
    from music_evals.caimap.services.managing import add_finished, add_songs, check_new

    if options.finished:
        if options.audio or options.prepared or not options.licence:
            raise InvalidInputError("--finished needs --licence, and takes no --audio and no --prepared")
        songs = read_finished(options.table, options.config, options.split, licence=options.licence)
        with _opened(options) as service:
            count = add_finished(service, first_administrator(service), songs)
        return _tell(f"{count} songs")
    if not options.audio:
        raise InvalidInputError("say with --audio where the recordings are")
    with _opened(options) as service:
        prepared = None if options.prepared is None else read_prepared(options.prepared)
        read = read_songs(options.table, options.audio, licence=options.licence, prepared=prepared)
        who = first_administrator(service)
        check_new(service, who, read.songs)
        count = add_songs(service, who, keep_recordings(read.songs, options.audio, _folder(options, "audio")))
    if read.not_sampled:
        say(f"{len(read.not_sampled)} songs are not in the sample of the preparation, and were left out")
    return _tell(f"{count} songs")


def _tell(*lines: object) -> int:
    """Print what came of a step, a line each, and return the exit code of one that went well."""
    with to_stdout():
        print(*lines, sep="\n")
    return 0


@contextlib.contextmanager
def _opened(options: argparse.Namespace, *, new: bool = False) -> Iterator[Any]:
    """Open a study with the tables of this version; one that is not there is made where it may be `new`."""
    from music_evals.caimap.services.study import StudyService
    from music_evals.caimap.storage.store import Store, migrate

    if new:
        _folder(options, "audio")
    elif not options.database and not Path(options.study, "study.db").is_file():
        raise NoDataError(f"{options.study}: there is no study; make one with caimap init")
    migrate(_url(options))
    store = Store(_url(options))
    try:
        yield StudyService(store)
    finally:
        store.close()


def _serve(options: argparse.Namespace) -> int:
    from music_evals.errors import importing

    with importing("caimap", "the annotation platform"):
        from music_evals.caimap.services.accounts import has_people
        from music_evals.caimap.web.app import serve
        from music_evals.caimap.web.provider import AddressError, provider_of

    space = os.environ.get("SPACE_HOST", "").partition(",")[0]  # with a domain of one's own there are several
    served = f"https://{space}" if space else f"http://{options.host}:{options.port}"
    address = (options.address or served).rstrip("/")
    try:
        provider = provider_of(os.environ, address)
    except AddressError as error:
        raise InvalidInputError(
            f"{error}; people who sign in by a provider come back there: name it by --address"
        ) from error
    if options.demo:
        from music_evals.caimap.exchange.demo import PEOPLE, make_demo

        with _opened(options, new=True) as service:
            is_there = has_people(service)
        if not is_there:
            password = os.environ.get(PASSWORD_VARIABLE, "") or secrets.token_urlsafe(12)
            make_demo(_folder(options, "audio"), _url(options), password)
            say(f"accounts of the demo: {', '.join(PEOPLE)}; their password: {password}")
    missing = [name for name in ("OAUTH_CLIENT_ID", "OAUTH_CLIENT_SECRET") if not os.environ.get(name)]
    where = {"host": options.host, "port": options.port, "provider": provider, "proxies": options.proxies}
    with _opened(options) as service:
        if len(missing) == 1:
            say(f"{missing[0]} is missing: people sign in by passwords alone")
        if provider is not None:
            say(f"people may sign in by {provider.url}, which sends them back to {provider.redirect_uri}")
        say(f"{address}/; Ctrl+C ends it")
        serve(service, Path(options.study, "audio"), **where)
    return 0


def _finished(options: argparse.Namespace) -> tuple[Any, bytes]:
    """Return the finished songs of a study, and the key of its exports."""
    from music_evals.caimap.exchange.exporting import read_key
    from music_evals.caimap.services.managing import finished_songs

    with _opened(options) as service:
        return finished_songs(service), read_key(_folder(options) / "export.key")


def _export(options: argparse.Namespace) -> int:
    from music_evals.caimap.exchange.exporting import export_songs

    finished, key = _finished(options)
    export = export_songs(finished, Path(options.out), key=key, title=options.title)
    return _tell(f"{export.songs} songs by {export.people} people: {export.folder}")


def _publish(options: argparse.Namespace) -> int:
    from music_evals.caimap.exchange.exporting import publish_songs

    finished, key = _finished(options)
    how = {"title": options.title, "public": options.public, "adopt": options.adopt}
    published = publish_songs(finished, options.name, key=key, **how)
    sent = published.sent
    return _tell(f"{published.songs} songs, {sent.changed} files sent, {sent.deleted} deleted: {sent.url}")


def _simulate(options: argparse.Namespace) -> int:
    from music_evals.caimap.domain.simulation import Plan, simulate

    plans = [
        Plan(share, options.annotators, options.weeks, options.tasks, options.seed)
        for share in options.share or (0.1, 0.2, 0.4)
    ]
    with to_stdout():
        print("share\thabit\texcluded by week\twithin 30 songs\tsongs\tcents", end="\t")
        print("refused\tentered\tbelow the mark\tgood lost\tscored")
        for plan in plans:
            for outcome in simulate(plan):
                weeks = " ".join(f"{share:.2f}" for share in outcome.excluded)
                rates = f"{outcome.entered}\t{outcome.bad:.2f}\t{outcome.lost:.2f}\t{outcome.scored}"
                ends = f"{outcome.caught:.2f}\t{outcome.songs:g}\t{outcome.cents:.0f}"
                print(f"{plan.share:g}\t{outcome.habit}\t{weeks}\t{ends}\t{outcome.refused:.2f}\t{rates}")
    return 0


def _report(options: argparse.Namespace) -> int:
    from music_evals.caimap.exchange.reporting import write_pictures, write_report
    from music_evals.caimap.services.accounts import first_administrator
    from music_evals.caimap.services.oversight import study_agreement
    from music_evals.pipelines.descriptions import resolve_encoder

    encoder = resolve_encoder(options.encoder) if options.encoder else None
    with _opened(options) as service:
        agreement = study_agreement(service, first_administrator(service), encoder)
    out, how = Path(options.out), {"language": options.language}
    pictures = [write_pictures(options.export, out, **how)] if options.export else []
    return _tell(*write_report(agreement, out, **how), *pictures)


def _build_lexicon(options: argparse.Namespace) -> int:
    from music_evals.caimap.domain.lexica import build_lexicon, read_terms
    from music_evals.caimap.services.accounts import first_administrator
    from music_evals.caimap.services.managing import keep_lexica

    if options.least < 1 or options.most < 1:
        raise InvalidInputError("--least and --most must be at least 1")
    about = {"source": options.source, "licence": options.licence, "least": options.least, "most": options.most}
    read = {
        name: read_terms(options.captions, options.column.replace("{dimension}", name)) for name in options.dimensions
    }
    built = {name: build_lexicon(captions, **about) for name, captions in read.items()}
    with _opened(options) as service:
        keep_lexica(service, first_administrator(service), options.group, built)
    return _tell(*(f"{options.group} {name}: {len(lexicon.terms)} terms" for name, lexicon in built.items()))


def _backup(options: argparse.Namespace) -> int:
    from music_evals.caimap.storage.backups import backup

    written = backup(options.study, _url(options), options.copy)
    if written.left_out:
        say(f"not copied, since a study does not need it: {', '.join(written.left_out)}")
    return _tell(f"{written.files} files, {written.n_bytes} bytes: {written.folder}")


def _restore(options: argparse.Namespace) -> int:
    from music_evals.caimap.storage.backups import restore

    restored = restore(options.copy, options.study, _url(options))
    return _tell(f"{restored.files} files, {restored.n_bytes} bytes: {restored.folder}")
