"""Songs of CaiMD and of files in its schema: words, patterns, themes and tags, checked once.

Songs are clustered: two are of one group where they have the same title and performers, or the same words. The released
data hold both, a song that was recorded twice and one that was annotated twice, and neither is a second observation.
Titles and performers are compared without case, width and outer spaces. Cover versions by other performers, whose words
differ in a few places, are groups of their own.
"""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from music_evals.annotations import GROUPS, LyricSection, sections_of_rows, sections_text, theme_of_row
from music_evals.benchmark.inputs import json_lines, load_split, resolve_revision, some
from music_evals.benchmark.run import Settings
from music_evals.errors import (
    InvalidInputError,
    InvalidLyricsError,
    MusicEvalsError,
    NoDataError,
    PairCountError,
    located,
)
from music_evals.files import item_name
from music_evals.locations import Remote, location
from music_evals.lyrics.embeddings import DEFAULT_ENCODER
from music_evals.lyrics.tag_groups import fold_tag
from music_evals.options import option
from music_evals.pipelines.descriptions import check_description, description_of_row

COLUMNS = ("structure", "professional", "amateur")
"""Columns beside ``id`` that a song is made of."""

THEMES = "lyric_themes"
"""The dimension whose free text is the theme of a song."""

Tags = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Group of annotators -> dimension -> tags."""


def predictions_text(fields: str) -> str:
    """Return what the option `predictions` says, of lines with these fields."""
    return (
        f'JSON lines {{"id": SONG, {fields}}}, or their URL; may be given again for other systems; without them the '
        "controls alone are scored"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderSettings:
    """How tags are compared by their embeddings."""

    encoder: str = option(
        DEFAULT_ENCODER,
        "sentence-transformers model, a Hub id or a folder, or char-ngrams, which needs no weights and knows no "
        "meaning (default: %(default)s)",
        metavar="NAME",
    )
    encoder_revision: str | None = option(None, "commit, tag or branch of the encoder's Hub id", metavar="REV")
    device: str | None = option(None, "where the encoder computes, as cpu or cuda:1 (default: a GPU if any)")
    cache: str | os.PathLike[str] | None = option(
        None, "keep the vectors of tags here, for the next run too", metavar="DIR"
    )
    aggregation: str = option("mean", "mean of all pairs (default), best_match or f1")
    normalize_by_self: bool = option(False, "divide by what the two lists have with themselves")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ThemeSettings:
    """How lyrics are compared with the themes of their songs."""

    theme_encoder: str | None = option(
        None,
        "also compare texts with the themes of their songs, by a sentence-transformers model (Hub id or folder) or "
        "char-ngrams, which knows no meaning (default: not compared)",
        metavar="NAME",
    )
    theme_encoder_revision: str | None = option(None, "commit, tag or branch of its Hub id", metavar="REV")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SongSettings(Settings):
    """What the benchmarks of what systems made for songs have in common."""

    # ``FILE`` or ``NAME=FILE`` for each system, a path or a URL; see `texts.read_predictions`.
    predictions: Sequence[str | os.PathLike[str]] = option(
        (), predictions_text('"text": LYRICS'), group="data", metavar="[NAME=]FILE"
    )
    controls: bool = option(True, "leave out the rows of controls", group="data")

    GO_WITH: ClassVar = {"dataset": ("config", "revision", "predictions")}

    def read_songs(self, columns: Collection[str]) -> SongSet:
        """Return the songs of the dataset."""
        return read_songs(
            str(self.dataset), self.config, self.split, revision=self.revision, limit=self.limit, columns=columns
        )


@dataclasses.dataclass(frozen=True)
class Song:
    """One song."""

    id: str  # as in the data
    group: str  # cluster: the id of the first song that has its title and performers, or its words; see the module
    title: str = ""  # may be empty where the rows hold none
    artist: tuple[str, ...] = ()
    # What the words are about, in a sentence or more: the professional's free text on the themes of the lyrics, or the
    # amateur's if it is missing; empty if both are.
    theme: str = ""
    # Group of annotators -> its free text on the themes of the lyrics, where it is not empty.
    themes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    words: tuple[LyricSection, ...] = ()  # sections with their lines
    # The same sections with the patterns of these lines: ``c`` a character, ``R`` a rhyming one, space a pause.
    pattern: tuple[LyricSection, ...] = ()
    # Group of annotators -> dimension -> tags, exactly as in the data.
    tags: Tags = dataclasses.field(default_factory=dict)

    @property
    def has_words(self) -> bool:
        """Whether any line of its words holds text."""
        return any(line.strip() for section in self.words for line in section.lines)

    def words_text(self, *, numbered: bool = True) -> str:
        """Return the words with section headers; see `annotations.sections_text`."""
        return sections_text(self.words, numbered=numbered)

    def pattern_text(self, *, numbered: bool = True) -> str:
        """Return the pattern with section headers, the reference of the lyric score."""
        return sections_text(self.pattern, numbered=numbered)


@dataclasses.dataclass(frozen=True)
class SongSet:
    """Songs, and where they come from."""

    about: Mapping[str, Any]  # ``id``, ``config``, ``split`` and ``revision``, for the receipt
    songs: tuple[Song, ...]  # in the order of the data
    other_ids: frozenset[str] = frozenset()  # ids of the songs that a limit left out

    def unnumbered(self) -> SongSet:
        """Return the same songs with section labels without numbers, as prompts have them."""
        songs = []
        for song in self.songs:
            words, pattern = (
                tuple(LyricSection(section.kind, section.lines) for section in side)
                for side in (song.words, song.pattern)
            )
            songs.append(dataclasses.replace(song, words=words, pattern=pattern))
        return dataclasses.replace(self, songs=tuple(songs))


def load_songs(
    dataset: str,
    config: str | None = None,
    split: str = "test",
    *,
    revision: str | None = None,
    limit: int | None = None,
    columns: Collection[str] = COLUMNS,
) -> list[Song]:
    """Load the songs of one split of a dataset (a name, a folder, a Hub id), or of a file of JSON lines or its URL.

    Each line of a file is a row of CaiMD's schema. `limit` keeps the first songs only; `columns` are those of `COLUMNS`
    that must be there, and the others are read where they are.
    """
    return list(read_songs(dataset, config, split, revision=revision, limit=limit, columns=columns).songs)


def read_songs(
    dataset: str,
    config: str | None = None,
    split: str = "test",
    *,
    revision: str | None = None,
    limit: int | None = None,
    columns: Collection[str] = COLUMNS,
) -> SongSet:
    """Return what `load_songs` does, with where the songs come from and the ids that the limit left out."""
    path = location(dataset)
    if isinstance(path, Remote) or path.is_file() or path.suffix == ".jsonl":
        if config is not None or revision is not None:
            raise InvalidInputError(
                f"{dataset} is a file, which has neither configs nor revisions; leave out `config` and `revision`"
            )
        rows: Iterable[tuple[str, Mapping[str, Any]]] = (
            (f"{path}, line {number}", row) for number, row in json_lines(path)
        )
        about = {"id": path.name, "config": None, "split": None, "revision": None}
    else:
        revision = resolve_revision(dataset, revision)
        table = load_split(dataset, config, split, revision=revision)
        about = {"id": dataset, "config": table.info.config_name, "split": split, "revision": revision}
        rows = ((f"{dataset}, row {number}", row) for number, row in enumerate(table))
    songs = [_song(row, where, columns) for where, row in rows]
    if not songs:
        raise NoDataError(f"{dataset} holds no songs; nothing can be scored")
    twice = [item for item, count in Counter(song.id for song in songs).items() if count > 1]
    if twice:
        raise PairCountError(
            f"{dataset}: ids of songs must be unique, twice or more: {some(twice)}; give each song its own id"
        )
    songs = _grouped(songs)
    others = frozenset(song.id for song in songs[limit or len(songs) :])
    return SongSet(MappingProxyType(about), tuple(songs[:limit]), others)


def check_ids(ids: Iterable[str], songs: SongSet, where: str) -> None:
    """Raise where ids name songs that are not in the data; those that a limit left out are no error."""
    known = {song.id for song in songs.songs} | songs.other_ids
    unknown = [item for item in dict.fromkeys(ids) if item not in known]
    if unknown:
        place = " ".join(str(songs.about[key]) for key in ("id", "config", "split") if songs.about[key])
        raise PairCountError(
            f"{where}: {len(unknown)} ids are not songs of {place}: {some(unknown)}; its ids are like "
            f"{some(sorted(known)[:2])}. Check dataset, config and split"
        )


def _song(row: Mapping[str, Any], where: str, columns: Collection[str]) -> Song:
    missing = [name for name in ("id", *columns) if row.get(name) is None]
    if missing:
        raise InvalidInputError(
            f"{where}: nothing in {', '.join(missing)}; expected id and {', '.join(columns)}, got {', '.join(row)}"
        )
    item = row["id"]
    if not isinstance(item, str) or not item.strip():
        raise InvalidInputError(f"{where}: the id must be a text that is not empty, got {item!r}")
    item, where = item_name(item), f"{where} ({item})"
    words, pattern = _structure(row.get("structure"), where)
    themes = _themes(row, where)
    try:
        tags = check_description(description_of_row(row), "tags")
    except MusicEvalsError as error:
        raise located(error, where) from error
    return Song(
        id=item,
        group=item,
        title=_text(row.get("title"), f"{where}: title"),
        artist=_strings(row.get("artist"), f"{where}: artist", InvalidInputError),
        theme=theme_of_row(row) or "",
        themes=themes,
        words=words,
        pattern=pattern,
        tags=tags,
    )


def _structure(rows: Any, where: str) -> tuple[tuple[LyricSection, ...], tuple[LyricSection, ...]]:
    if rows is None:
        return (), ()
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InvalidInputError(
            f"{where}: structure must be a list of sections {{label, lines, rhyme}}, got {_kind(rows)}"
        )
    sides: dict[str, tuple[LyricSection, ...]] = {}
    for field in ("lines", "rhyme"):
        checked = [
            {"label": row.get("label"), field: _strings(row.get(field), f"{where}: {field}", InvalidLyricsError)}
            for row in rows
        ]
        if not all(isinstance(row["label"], str) for row in checked):
            raise InvalidLyricsError(f"{where}: every section needs a label such as 'verse1'")
        try:
            sides[field] = sections_of_rows(checked, field)
        except MusicEvalsError as error:
            raise located(error, where) from error
    words, pattern = sides["lines"], sides["rhyme"]
    for with_words, with_pattern in zip(words, pattern, strict=True):
        # words may be left out of a file altogether; the patterns may not
        if with_words.lines and len(with_words.lines) != len(with_pattern.lines):
            raise InvalidLyricsError(
                f"{where}: section {with_words.label!r} has {len(with_words.lines)} lines and "
                f"{len(with_pattern.lines)} patterns; give each line its pattern"
            )
    return words, pattern


def _strings(value: Any, name: str, error: type[InvalidInputError]) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
        raise error(f"{name} must be a list of texts, got {_kind(value)}")
    return tuple(value)


def _text(value: Any, name: str) -> str:
    if value is not None and not isinstance(value, str):
        raise InvalidInputError(f"{name} must be a text, got {_kind(value)}")
    return value or ""


def _kind(value: Any) -> str:
    if isinstance(value, list | tuple):
        kinds = sorted({type(inner).__name__ for inner in value})
        return f"a {type(value).__name__} of {' and '.join(kinds) or 'nothing'}"
    if isinstance(value, dict):
        return f"a dict with {', '.join(map(str, value)) or 'nothing'}"
    return type(value).__name__


def _themes(row: Mapping[str, Any], where: str) -> dict[str, str]:
    themes: dict[str, str] = {}
    for group in GROUPS:
        dimensions = (row.get(group) or {}).get("dimensions") if isinstance(row.get(group), dict) else None
        entry = dimensions.get(THEMES) if isinstance(dimensions, dict) else None
        text = _text(entry.get("text"), f"{where}: {group}, {THEMES}: text") if isinstance(entry, dict) else ""
        if text.strip():
            themes[group] = text.strip()
    return themes


def _grouped(songs: Sequence[Song]) -> list[Song]:
    """Name the group of each song after the first song that it shares title and performers, or words, with."""
    leaders: dict[str, str] = {song.id: song.id for song in songs}

    def leader(item: str) -> str:
        while leaders[item] != item:
            item = leaders[item]
        return item

    order = {song.id: place for place, song in enumerate(songs)}
    first: dict[tuple[str, ...], str] = {}
    for song in songs:
        keys: list[tuple[str, ...]] = []
        if song.title.strip():
            keys.append(("title", fold_tag(song.title), *sorted(map(fold_tag, song.artist))))
        if song.has_words:
            keys.append(("words", *(line.strip() for section in song.words for line in section.lines)))
        for key in keys:
            earlier, later = sorted((leader(first.setdefault(key, song.id)), leader(song.id)), key=order.__getitem__)
            leaders[later] = earlier
    return [dataclasses.replace(song, group=leader(song.id)) for song in songs]
