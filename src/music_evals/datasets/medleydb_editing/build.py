"""MedleyDB excerpts and the edits that are asked of them: the sources of ZETA and of the vanilla baseline.

MedleyDB's audio may not be passed on, and the sentences of MedleyMDPrompts (Manor and Michaeli, ICML 2024, CC BY 4.0)
are not copied here. What is here is a manifest: which excerpt, which prompt of the published table, and the start of
the SHA-256 of its sentence. `read_prompts` joins the sentences from the user's copy of the table, `attach` the
recordings from the user's copy of MedleyDB. The config ``stand_in`` needs neither: pieces of `known_edits`, with
prompts of our own.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from music_evals.datasets.known_edits import build as known_edits
from music_evals.errors import InvalidInputError, NoDataError, UnreadableFileError
from music_evals.files import write_atomically

__all__ = ["CONFIGS", "Attached", "attach", "build_config", "features", "read_prompts", "render_stand_in"]

CONFIGS = ("zeta", "vanilla", "stand_in")
"""Names of the configs; `stand_in` is our own."""

PROMPT_TABLE = "prompts.csv"
"""Package data, made of the published tables at commit f324c19 of HilaManor/AudioEditingCode."""

HASH_DIGITS = 16
VANILLA_EXCERPTS = 20  # "20 prompts from MedleyDB"; the paper does not say which
VANILLA_SEED = 0

# Our own wishes for the stand-in: none of them is taken from the published table.
STAND_IN_INSTRUCTIONS = (
    "Let a church organ play all of it.",
    "Turn it into music for an old video game.",
    "Play it as slow chamber music for strings.",
    "Make a dance track of it, with a heavy kick drum.",
    "Give the tune to a clarinet and leave the rest as it is.",
    "Leave out everything but the tune and the bass.",
)
STAND_IN_PIECES = (
    "song_rock", "song_waltz", "song_ballad", "song_bossa", "song_disco", "song_synth",
    "song_pop", "song_jig", "song_funk", "song_march", "song_blues", "song_minuet",
)  # fmt: skip

Row = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Attached:
    """Rows with a recording, and what had to be left out."""

    rows: tuple[Row, ...]  # rows whose recording is there; ``audio`` holds its path
    missing: tuple[str, ...]  # recordings that are not there, relative to the root, each once
    wrong: tuple[str, ...]  # recordings that are there but are not the ones of the manifest, each once

    @property
    def summary(self) -> str:
        """Counts in words."""
        return (
            f"{len(self.rows)} rows with a recording; {len(self.missing)} recordings missing, "
            f"{len(self.wrong)} with another checksum"
        )


def features() -> Any:
    """Return the `datasets.Features` of the rows."""
    from datasets import Features, Value

    return Features({name: Value(kind) for name, kind in _COLUMNS.items()})


_COLUMNS = {
    "id": "string",
    "excerpt": "string",
    "audio_file": "string",
    "audio_sha256": "string",  # null: nobody has published one
    "instruction": "string",  # null until the table is joined
    "instruction_sha256_16": "string",
    "source_description": "string",
    "source_sha256_16": "string",
    "needs_source": "bool",  # null where the published table holds a value that it does not explain
    "origin": "string",
}


def build_config(config: str, sentences: Mapping[str, str] | None = None) -> list[Row]:
    """Return the rows of a config."""
    if config == "stand_in":
        return _stand_in_rows()
    sources, targets = _published()
    if config == "zeta":
        chosen: list[tuple[str, str, dict[str, str] | None]] = [
            (row["excerpt"], row["sha256_16"], row) for row in targets
        ]
    else:
        chosen = [(excerpt, sources[excerpt][0], None) for excerpt in _vanilla_excerpts(sorted(sources))]
    rows = []
    for number, (excerpt, digest, target) in enumerate(chosen):
        source = "" if target is None else sources[excerpt][int(target["source_index"]) - 1]
        rows.append(
            {
                "id": f"{config}_{number:04d}",
                "excerpt": excerpt,
                "audio_file": f"MusicDelta_{excerpt}/MusicDelta_{excerpt}_MIX.wav",
                "audio_sha256": None,
                "instruction": _sentence(sentences, digest),
                "instruction_sha256_16": digest,
                "source_description": _sentence(sentences, source) if source else None,
                "source_sha256_16": source or None,
                "needs_source": None if target is None else {"yes": True, "no": False}.get(target["needs_source"]),
                "origin": "MedleyMDPrompts",
            }
        )
    return rows


def _stand_in_rows() -> list[Row]:
    """Give each piece half of the wishes, in turn."""
    half = len(STAND_IN_INSTRUCTIONS) // 2
    wishes = itertools.cycle(STAND_IN_INSTRUCTIONS)
    return [
        {
            "id": f"stand_in_{number:04d}",
            "excerpt": piece,
            "audio_file": f"{piece}.wav",
            "audio_sha256": None,
            "instruction": (wish := next(wishes)),
            "instruction_sha256_16": _digest(wish),
            "source_description": None,
            "source_sha256_16": None,
            "needs_source": True,
            "origin": "music_evals",
        }
        for number, (piece, _) in enumerate(itertools.product(STAND_IN_PIECES, range(half)))
    ]


@functools.cache
def _published() -> tuple[dict[str, list[str]], list[dict[str, str]]]:
    """Return the digests of the source captions by excerpt, and the rows of the target prompts."""
    text = (files("music_evals.datasets.medleydb_editing") / PROMPT_TABLE).read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    sources: dict[str, list[str]] = {}
    for row in rows:
        if row["kind"] == "source":
            sources.setdefault(row["excerpt"], []).append(row["sha256_16"])
    return sources, [row for row in rows if row["kind"] == "target"]


def _vanilla_excerpts(names: Sequence[str]) -> list[str]:
    chosen = np.random.default_rng(VANILLA_SEED).choice(len(names), VANILLA_EXCERPTS, replace=False)
    return [names[index] for index in sorted(chosen)]


def _sentence(sentences: Mapping[str, str] | None, digest: str) -> str | None:
    if sentences is None:
        return None
    if digest not in sentences:
        raise InvalidInputError(
            f"the prompt tables lack the sentence with SHA-256 {digest}...; give captions_targets.csv and "
            "captions_sources.csv of MedleyMDPrompts, as published"
        )
    return sentences[digest]


def _digest(sentence: str) -> str:
    return hashlib.sha256(sentence.encode()).hexdigest()[:HASH_DIGITS]


def read_prompts(paths: Iterable[Path]) -> dict[str, str]:
    """Read tables of MedleyMDPrompts: the start of the SHA-256 of each sentence -> the sentence."""
    sentences: dict[str, str] = {}
    for path in paths:
        try:
            rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
        except FileNotFoundError:
            raise NoDataError(
                f"{path}: no such file; MedleyMDPrompts is in the repository HilaManor/AudioEditingCode"
            ) from None
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise UnreadableFileError(f"{path}: cannot be read as a table ({error})") from error
        column = next((name for name in ("target_captions", "source_captions") if rows and name in rows[0]), None)
        if column is None:
            raise UnreadableFileError(f"{path}: expected a CSV file with a column target_captions or source_captions")
        sentences |= {_digest(row[column]): row[column] for row in rows}
    return sentences


def attach(rows: Iterable[Row], root: str | Path) -> Attached:
    """Find the recording of each row in the user's own copy.

    Parameters
    ----------
    rows
        Rows of one of the configs.
    root
        Folder of MedleyDB (with or without its folder ``Audio``), or any folder that holds the files; for ``stand_in``
        the one that `render_stand_in` wrote to.

    Returns
    -------
    Attached
        Rows with ``audio``, the path of the recording, and what is missing.

    Raises
    ------
    NoDataError
        The folder does not exist, or holds none of the recordings.

    """
    folder = Path(root)
    if not folder.is_dir():
        raise NoDataError(f"{folder}: no such folder; give the root of your copy of MedleyDB")
    found: list[Row] = []
    missing: dict[str, None] = {}
    wrong: dict[str, None] = {}
    for row in rows:
        path = _find(folder, row["audio_file"])
        if path is None:
            missing[row["audio_file"]] = None
        elif row["audio_sha256"] not in {None, _file_sha256(path)}:
            wrong[row["audio_file"]] = None
        else:
            found.append({**row, "audio": str(path)})
    if not found:
        wanted = [*missing, *wrong]
        raise NoDataError(
            f"{folder}: none of the {len(wanted)} recordings is there, such as {wanted[0] if wanted else 'any'}; "
            "MedleyDB is given out by its authors, https://medleydb.weebly.com; render_stand_in makes those of stand_in"
        )
    return Attached(tuple(found), tuple(missing), tuple(wrong))


def render_stand_in(folder: str | Path, *, renderer: str = "additive") -> Path:
    """Write the recordings of ``stand_in`` into a folder, which `attach` takes, and return it.

    Raises
    ------
    UnknownNameError
        A renderer that does not exist.
    MissingBackendError
        The renderer is not installed.
    OutputError
        The folder cannot be written to.

    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    rows = {row["piece"]: row for half in ("tuning", "held_out") for row in known_edits.load_rows("default", half)}
    for piece in STAND_IN_PIECES:
        recording = known_edits.render(rows[piece], renderer=renderer, which="reference")
        write_atomically(target / f"{piece}.wav", recording.read_bytes())
    return target


def _find(folder: Path, name: str) -> Path | None:
    """Return the recording, which MedleyDB keeps in a folder a song, and other copies side by side."""
    candidates = (folder / name, folder / "Audio" / name, folder / Path(name).name)
    return next((path for path in candidates if path.is_file()), None)


def _file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
