"""A copy of the published CaiMD, read song by song.

The release holds a folder a song with the seven files of `FILES`, without extension, and beside the songs the id maps
of `MAPS`. V1 (1,000 songs, ``s_0001`` to ``s_1000``) is clean. The sample of V2 that was published with its repository
(commit e367e911, 30 songs) is not: the two description files stand under each other's name, the wording of the
question stands where its answer should be and among the tags, and ``raw_lyric`` repeats a description. All of that is
found by the ids and the wording of the maps, repaired where the truth is still there, and counted.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS
from music_evals.datasets.caimd import texts
from music_evals.datasets.caimd.schema import CLEAR, UNCLEAR, effect_tags
from music_evals.datasets.caimd.texts import BrokenSongError
from music_evals.errors import NoDataError, UnknownNameError, UnreadableFileError

DESCRIPTION_FILES: Final = {"professional": "prof_desc_json", "amateur": "amat_desc_json"}
FILES: Final = (*DESCRIPTION_FILES.values(), "meta_info", "raw_lyric", "str_lyric", "str_rhyme", "tknz_json")
"""What the folder of a song holds."""

MAPS: Final = ("qidmap.json", "subqidmap.json", "opidmap.json")
"""Ids of questions, of sub-questions and of answers to closed questions -> their wording."""

OVERLAPS: Final = ("muchin_5790_1000_overlap.jsonl", "list-fp.enlarged_matches.jsonl")
"""Either name of the list of V2 songs that are songs of V1 once more."""

LAYOUTS: Final = ("auto", "v1", "v2")

MAX_DEPTH: Final = 5
"""How far below the source song folders are looked for."""

_V1_NAME: Final = re.compile(r"s_\d{4}")
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ID_DIGITS: Final = 8
_FEWEST, _FEWEST_HARD_TO_NAME, _MOST = 3, 1, 5
_HARD_TO_NAME: Final = {("amateur", name) for name in ("song_purpose", "culture_region", "target_audience")}
_SHORTEST_TEXT: Final = 50
_YES_NO: Final = {"是": True, "否": False}


class IdMaps(NamedTuple):
    """The wording behind the ids of the release, by full id."""

    questions: Mapping[str, str]
    parts: Mapping[str, str]
    options: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Release:
    """The songs of a copy of the release."""

    root: Path  # the folder that was given; nothing outside of it is read as a song
    layout: str  # ``"v1"`` or ``"v2"``
    splits: Mapping[str, tuple[Path, ...]]  # split -> folders of its songs, sorted by name
    left_out: tuple[tuple[str, str], ...]  # (Folder below the root, reason) of folders that are no song


class Song(NamedTuple):
    """A row, and how often each anomaly of `texts.ANOMALIES` was met in it."""

    row: dict[str, Any]
    anomalies: Counter[str]


def read_maps(source: Path, folder: Path | None = None) -> IdMaps:
    """Read the id maps and make sure that they say what the dimensions are known by."""
    paths = [_find_nearby(source, (name,), folder) for name in MAPS]
    read = [texts.parse_object(texts.read_text(path, None), path) for path in paths]
    for name, table in zip(MAPS, read, strict=True):
        if not all(isinstance(value, str) for value in table.values()):
            raise UnreadableFileError(f"{name}: expected a JSON object of strings; take the file from the release")
    maps = IdMaps(*read)
    wording = {key[:_ID_DIGITS]: value for key, value in maps.parts.items()}
    for dimension in (row for table in DIMENSIONS.values() for row in table.values()):
        reported = [wording.get(digits) for digits in dimension.question_ids]
        if None in reported or (dimension.name != AUDIO_EFFECTS and reported != [dimension.chinese]):
            raise UnreadableFileError(
                f"{MAPS[1]} calls {dimension.question_ids} {reported}, expected {dimension.chinese!r}; another release?"
            )
    return maps


def _find_nearby(source: Path, names: Sequence[str], folder: Path | None) -> Path:
    places = [folder] if folder else [source, *_folders(source, MAX_DEPTH - 1), source.resolve().parent]
    for place in places:
        for name in names:
            if (place / name).is_file():
                return place / name
    raise NoDataError(
        f"{folder or source}: found no {' or '.join(names)}; it lies in the folder `dataset` of the repository "
        "CarlWangChina/MuChin and in `Datasets-for-MuChin-V2` of CarlWangChina/MuChin-V2-6066; say where it is"
    )


def _folders(root: Path, depth: int) -> Iterator[Path]:
    """Yield the folders below a folder that are no songs, nearest first by level; links are not followed."""
    try:
        inner = sorted(path for path in root.iterdir() if path.is_dir() and not path.is_symlink())
    except OSError as error:
        raise UnreadableFileError(f"{root}: cannot be listed ({error.strerror}); check its permissions") from error
    inner = [path for path in inner if not path.name.startswith(".") and not _is_song(path)]
    yield from inner
    if depth > 1:
        for path in inner:
            yield from _folders(path, depth - 1)


def _is_song(path: Path) -> bool:
    return any((path / name).is_file() or (path / name).is_symlink() for name in FILES)


def find_release(source: Path, layout: str = "auto", overlap: Path | None = None) -> Release:
    """Find the songs of a release and say which split each belongs to."""
    # V1 is one split, ``test``. In V2 the songs of V1 stay ``test``; the others are ``train``, but for those that the
    # release lists as songs of V1 by their fingerprint: they were annotated a second time and are the split
    # ``repeated``. The authors recommend the first annotation of them.
    if layout not in LAYOUTS:
        raise UnknownNameError("layout", layout, LAYOUTS)
    if not source.is_dir():
        raise NoDataError(f"{source}: no such folder; give the folder of your copy of the release")
    songs, left_out = _songs(source)
    if layout == "auto":
        layout = "v1" if all(_V1_NAME.fullmatch(name) for name in songs) else "v2"
    if layout == "v1":
        others = [path for name, path in songs.items() if not _V1_NAME.fullmatch(name)]
        left_out += [(_below(path, source), "not a song of V1") for path in others]
    if not any(layout == "v2" or _V1_NAME.fullmatch(name) for name in songs):
        raise NoDataError(
            f"{source}: no folder of a song within {MAX_DEPTH} levels; a song has files such as {FILES[4]}"
        )
    return Release(source, layout, _splits(songs, layout, source, overlap), tuple(left_out))


def _songs(source: Path) -> tuple[dict[str, Path], list[tuple[str, str]]]:
    """Return the songs by name, sorted, and the folders that look like songs but are not."""
    songs: dict[str, Path] = {}
    left_out: list[tuple[str, str]] = []
    for parent in [source, *_folders(source, MAX_DEPTH - 1)]:
        for path in sorted(path for path in parent.iterdir() if path.is_dir() and _is_song(path)):
            if path.is_symlink() and not path.resolve().is_relative_to(source.resolve()):
                left_out.append((_below(path, source), "a link that leads out of the release"))
            elif not _NAME.fullmatch(path.name):
                left_out.append((_below(path, source), "a name that is no id: letters, digits, _ and - only"))
            elif path.name in songs:
                left_out.append((_below(path, source), f"a second folder of song {path.name}"))
            else:
                songs[path.name] = path
    return dict(sorted(songs.items())), left_out


def _below(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def _splits(songs: Mapping[str, Path], layout: str, source: Path, overlap: Path | None) -> dict[str, tuple[Path, ...]]:
    first = tuple(path for name, path in songs.items() if _V1_NAME.fullmatch(name))
    if layout == "v1":
        return {"test": first}
    place = overlap or _find_nearby(source, OVERLAPS, None)
    try:
        lines = [json.loads(line) for line in texts.read_text(place, None).split("\n") if line.strip()]
        matches = [re.fullmatch(r".*/([\w-]+)_src\.json", line["query"]) for line in lines]
    except (ValueError, TypeError, KeyError) as error:
        raise UnreadableFileError(
            f'{place}: expected lines such as {{"query": ".../qq_1_src.json", "matches": [...]}} ({error})'
        ) from error
    again = {match[1] for match in matches if match}
    others = {name: path for name, path in songs.items() if not _V1_NAME.fullmatch(name)}
    splits = {
        "test": first,
        "train": tuple(path for name, path in others.items() if name not in again),
        "repeated": tuple(path for name, path in others.items() if name in again),
    }
    return {split: paths for split, paths in splits.items() if paths}


def read_song(folder: Path, maps: IdMaps, root: Path | None = None) -> Song:
    """Read the files of one song."""
    anomalies: Counter[str] = Counter()
    files = {name: texts.read_text(folder / name, root or folder, anomalies) for name in FILES}
    row: dict[str, Any] = {"id": folder.name}
    row |= texts.parse_meta(files["meta_info"], anomalies, slash=not _V1_NAME.fullmatch(folder.name))
    read: dict[str, dict[str, Any]] = {}
    for expected, name in DESCRIPTION_FILES.items():
        answers = _Answers(folder / name, files[name], maps, anomalies)
        group = answers.group
        if group in read:
            raise BrokenSongError("unparsable", folder / name, f"both description files hold {group} answers")
        anomalies["groups_swapped"] += group != expected and expected == "professional"
        read[group] = answers.description(group)
    row |= {group: read[group] for group in DIMENSIONS}
    row["structure"] = texts.parse_structure(files["str_lyric"], files["str_rhyme"], folder, anomalies)
    row["timed_lyrics"] = texts.parse_raw(files["raw_lyric"], anomalies)
    row["timed_sections"] = texts.parse_tokens(files["tknz_json"], folder / "tknz_json", anomalies)
    texts.compare_raw(row, anomalies)
    return Song(row, anomalies)


class _Answers:
    """One description file: what was answered, by the first digits of the sub-question's id."""

    def __init__(self, path: Path, text: str, maps: IdMaps, anomalies: Counter[str]) -> None:
        self.path, self.maps, self.anomalies = path, maps, anomalies
        self.tags: dict[str, tuple[list[str], str | None, str | None]] = {}
        self.options: dict[str, tuple[str, str | None]] = {}
        reported = texts.parse_object(text, path)
        self.anomalies["mid_differs"] += reported.get("mid") != path.parent.name
        try:
            for question in reported["ans"]:
                self._question(question)
        except (KeyError, TypeError, AttributeError) as error:
            raise BrokenSongError("unparsable", path, f"not the form of a description ({error!r})") from error

    def _question(self, question: Mapping[str, Any]) -> None:
        shared = self._text(question, self.maps.questions.get(question["id"]))
        for part in question.get("tags", ()):
            digits = self._digits(part["tid"], self.tags)
            if digits:
                value, text = part["value"], self._text(part, None)
                if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
                    raise BrokenSongError("unparsable", self.path, f"tags must be a list of strings, got {value!r:.80}")
                labelled = value[:1] == [self.maps.parts[part["tid"]]]
                self.anomalies["label_among_tags"] += labelled
                self.tags[digits] = (value[labelled:], text, shared)
        for part in question.get("options", ()):
            digits = self._digits(part["oid"], self.options)
            if digits:
                self.options[digits] = (self.maps.options[str(part["opid"])], self._text(part, None))

    def _text(self, entry: Mapping[str, Any], wording: str | None) -> str | None:
        text = entry.get("desc")
        if text is not None and not isinstance(text, str):
            raise BrokenSongError("unparsable", self.path, f"a free text is no text: {text!r}")
        self.anomalies["question_for_text"] += text is not None and text == wording
        return None if text == wording else text

    def _digits(self, full: str, known: Mapping[str, Any]) -> str | None:
        """Return the digits that an answer is known by, or None where it is left out."""
        if full not in self.maps.parts:
            self.anomalies["unknown_id"] += 1
            return None
        digits = full[:_ID_DIGITS]
        self.anomalies["repeated_answer"] += digits in known
        return None if digits in known else digits

    @property
    def group(self) -> str:
        """Whose answers these are, by the ids alone."""
        counts = {
            group: sum(digits in self.tags for row in table.values() for digits in row.question_ids)
            for group, table in DIMENSIONS.items()
        }
        if not any(counts.values()):
            raise BrokenSongError("unparsable", self.path, "no answer to any question that is known")
        return max(counts, key=lambda group: counts[group])

    def description(self, group: str) -> dict[str, Any]:
        """Return one of the two descriptions of a row."""
        question_ids = {digits for row in DIMENSIONS[group].values() for digits in row.question_ids}
        self.anomalies["unknown_id"] += len((set(self.tags) | set(self.options)) - question_ids)
        dimensions: dict[str, Any] = {}
        for name, row in DIMENSIONS[group].items():
            if name == AUDIO_EFFECTS:
                dimensions[name] = self._effects(row.question_ids)
            else:
                tags, text, _ = self.tags.get(row.question_ids[0], ([], None, None))
                fewest = _FEWEST_HARD_TO_NAME if (group, name) in _HARD_TO_NAME else _FEWEST
                self.anomalies["no_answer"] += not tags
                self.anomalies["number_of_tags"] += bool(tags) and not fewest <= len(tags) <= _MOST
                self.anomalies["spaces_around_tag"] += sum(tag != tag.strip() for tag in tags)
                self.anomalies["empty_tag"] += sum(not tag.strip() for tag in tags)
                self.anomalies["tag_twice"] += len(tags) - len(set(tags))
                dimensions[name] = {"tags": tags, "text": text}
        first = next(iter(DIMENSIONS[group].values())).question_ids[0]
        overall = self.tags[first][2] if first in self.tags else None
        self.anomalies["short_text"] += overall is not None and len(overall) < _SHORTEST_TEXT
        self.anomalies["no_text"] += overall is None
        return {"overall_text": overall, "dimensions": dimensions}

    def _effects(self, question_ids: tuple[str, ...]) -> dict[str, Any]:
        reported = [self.options.get(digits, (None, None)) for digits in question_ids]
        (sound, _), (live, live_text), (lo_fi, lo_fi_text) = reported
        self.anomalies["no_answer"] += sum(answer is None for answer, _ in reported)
        if sound not in {CLEAR, UNCLEAR, None} or not {live, lo_fi} <= {*_YES_NO, None}:
            raise BrokenSongError("unparsable", self.path, f"impossible answers on sound: {[sound, live, lo_fi]}")
        quality = {CLEAR: "clear", UNCLEAR: "unclear", None: None}[sound]
        flags = {"live": _YES_NO[live] if live else None, "lo_fi": _YES_NO[lo_fi] if lo_fi else None}
        return {
            "tags": effect_tags(quality, **flags),
            "text": None,
            "sound_quality": quality,
            **flags,
            "option_texts": {"live": live_text, "lo_fi": lo_fi_text},
        }
