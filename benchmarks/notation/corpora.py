"""The collections of files that the readers are compared on, and how they are fetched.

::

    python -m benchmarks.notation.corpora --files FOLDER                  # from GitHub, some 100 MB
    python -m benchmarks.notation.corpora --files FOLDER --clones CLONES  # from clones that are already there

`corpora.csv` lists them, each pinned by a commit and by the SHA-256 of the files that are taken from it. Nothing of
them is part of this repository. The collections of music21 are read where that package is installed.
"""

from __future__ import annotations

import argparse
import ast
import csv
import hashlib
import importlib.util
import io
import itertools
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

MUSIC21 = "music21"
FIELDS_FOR_ALL_TUNES = re.compile(r"^(?:[ILMUm]:|%%)")  # in the head of a file, ABC 2.1 section 2.2.2
TUNE_START = re.compile(r"^X:", re.MULTILINE)
BLANK_LINE = re.compile(r"\n[ \t]*(?:\n|$)")
TOO_LARGE = "files/samples/musicxml/challenging/*"  # whole symphonies, minutes for every reader
JS_STRING = r"""(?:'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`)"""
JS_STRINGS = re.compile(rf"{JS_STRING}(?:\s*\+\s*{JS_STRING})*")


class Corpus(NamedTuple):
    """Files of one source: patterns of the files wanted, and `every` how many tunes one is taken."""

    name: str
    kind: str
    source: str
    commit: str
    patterns: tuple[str, ...]
    sha256: str
    every: int = 1


class Item(NamedTuple):
    """One thing to read: a tune of an ABC file as text, or a whole file as its path."""

    corpus: str
    file: str
    tune: str
    content: str


def _listed() -> tuple[Corpus, ...]:
    with Path(__file__).with_name("corpora.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            Corpus(row["name"], row["kind"], row["source"], row["commit"], tuple(row["files"].split()), row["sha256"],
                   int(row["every"]))
            for row in csv.DictReader(file)
        )  # fmt: skip


CORPORA = _listed()


def folder_of(corpus: Corpus, files: Path) -> Path:
    """Return the folder that holds the files of a collection."""
    if corpus.source != MUSIC21:
        return files / corpus.source.replace("/", "+")
    found = importlib.util.find_spec(MUSIC21)
    if found is None or found.origin is None:
        sys.exit("music21 is not installed: pip install 'music_evals[symbolic]'")
    return Path(found.origin).parent


def paths_of(corpus: Corpus, files: Path) -> list[Path]:
    """Return the files of a collection, sorted by name."""
    folder = folder_of(corpus, files)
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return [folder / name for name in sorted(names) if _wanted(corpus, name)]


def check(corpus: Corpus, files: Path) -> str:
    """Return what is wrong with the files of a collection, or nothing."""
    paths = paths_of(corpus, files)
    if not paths:
        return f"no files; run python -m benchmarks.notation.corpora --files {files}"
    found = digest(corpus, files)
    return "" if found == corpus.sha256 else f"other files than those pinned: SHA-256 {found}, not {corpus.sha256}"


def digest(corpus: Corpus, files: Path) -> str:
    """Return one SHA-256 over the names and contents of all files of a collection."""
    folder, total = folder_of(corpus, files), hashlib.sha256()
    for path in paths_of(corpus, files):
        total.update(f"{path.relative_to(folder).as_posix()}\n".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def items_of(corpus: Corpus, files: Path) -> Iterator[Item]:
    """Yield what is to be read: every `every`-th tune of an ABC collection, every `every`-th file of another."""
    folder = folder_of(corpus, files)
    named = [(path, path.relative_to(folder).as_posix()) for path in paths_of(corpus, files)]
    if corpus.kind != "abc":
        yield from (Item(corpus.name, name, "", str(path)) for path, name in named[:: corpus.every])
        return
    tunes = [(name, number, text) for path, name in named for number, text in tunes_of(path)]
    for name, number, text in tunes[:: corpus.every]:
        yield Item(corpus.name, name, number, text)


def tunes_of(path: Path) -> list[tuple[str, str]]:
    """Return place and text of each tune of a file: ABC, or a program whose strings hold ABC.

    The place is the count of the tune in its file, from 1, and its number in ``X:``.
    """
    source = decode(path.read_bytes())
    if path.suffix == ".js":
        books = [text for text in _javascript_strings(source) if _is_tune(text)]
    elif path.suffix == ".py":
        constants = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
        books = [text for text in constants if isinstance(text, str) and _is_tune(text)]
    else:
        books = [source]
    texts = [text for book in books for text in split_book(book)]
    return [(f"{i} X:{text[2:].partition(chr(10))[0].strip()}", text) for i, text in enumerate(texts, 1)]


def split_book(book: str) -> list[str]:
    """Return the text of each tune, with the fields of the file's head that count for all of them after its ``X:``."""
    starts = [match.start() for match in TUNE_START.finditer(book)]
    head = [line for line in book[: starts[0] if starts else 0].splitlines() if FIELDS_FOR_ALL_TUNES.match(line)]
    texts = []
    for start, end in itertools.pairwise([*starts, len(book)]):
        first, _, rest = book[start:end].partition("\n")
        blank = BLANK_LINE.search("\n" + rest)
        body = rest if blank is None else rest[: max(blank.start() - 1, 0)]
        texts.append("\n".join([first, *head, body.strip("\n"), ""]))
    return texts


def decode(content: bytes) -> str:
    """Return text in UTF-8 or else Latin-1, with line feeds alone."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def fetch(corpus: Corpus, files: Path, clones: Path | None) -> None:
    """Bring the files of a collection into the folder, at its commit."""
    owner_and_name = corpus.source.replace("/", "+")
    with tempfile.TemporaryDirectory() as temporary:
        if clones is None:
            git = ["git", f"--git-dir={temporary}"]
            subprocess.run([*git, "init", "--quiet", "--bare"], check=True)
            address = f"https://github.com/{corpus.source}.git"
            subprocess.run([*git, "fetch", "--quiet", "--depth", "1", address, corpus.commit], check=True)
        else:
            git = ["git", f"--git-dir={(clones / owner_and_name).resolve()}"]
        listed = subprocess.check_output([*git, "ls-tree", "-r", "-z", "--name-only", corpus.commit]).decode()
        names = [name for name in listed.split("\0") if name and _wanted(corpus, name)]
        # Without its other files: a clone may lack large ones that nobody needs here.
        archive = subprocess.check_output(
            [*git, "archive", corpus.commit, "--", *(f":(literal){name}" for name in names)]
        )
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(files / owner_and_name, filter="data")


def _wanted(corpus: Corpus, name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in corpus.patterns) and not fnmatch(name, TOO_LARGE)


def _is_tune(text: str) -> bool:
    return TUNE_START.search(text) is not None and re.search(r"^K:", text, re.MULTILINE) is not None


def _javascript_strings(source: str) -> Iterator[str]:
    for match in JS_STRINGS.finditer(source):
        parts = re.findall(JS_STRING, match.group())
        yield "".join(re.sub(r"\\(.)", _unescaped, part[1:-1], flags=re.DOTALL) for part in parts)


def _unescaped(match: re.Match[str]) -> str:
    return {"n": "\n", "t": "\t", "r": "\r", "\n": ""}.get(match.group(1), match.group(1))


def main() -> None:
    """Fetch all collections that are not there yet, and check them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=Path, required=True, help="folder for the files")
    parser.add_argument("--clones", type=Path, help="folder of clones named owner+name, in place of GitHub")
    arguments = parser.parse_args()
    for corpus in CORPORA:
        if corpus.source != MUSIC21 and check(corpus, arguments.files):
            fetch(corpus, arguments.files, arguments.clones)
        n_files = len(paths_of(corpus, arguments.files))
        print(f"{corpus.name}: {n_files} files; {check(corpus, arguments.files) or 'as pinned'}")


if __name__ == "__main__":
    main()
