"""The benchmark of music description from end to end: settings in, result files out.

Each distinct tag is encoded once, before any song is scored. Averages are those of `pipelines.descriptions`: what a
system leaves without tags makes the average of that song undefined. All scores are always recorded, so that systems can
be added later. A system that does not speak for one of the two groups in any song has no score of this group, nor over
both; a score that no system speaks for is in no table.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import GROUPS, SCORED
from music_evals.benchmark.published import published_descriptions
from music_evals.benchmark.report import score_page
from music_evals.benchmark.rows import Pair, PairJob, score_or_reason
from music_evals.benchmark.run import RECORDS, Outcome, Progress, record, remove_results
from music_evals.benchmark.score_table import ABSENT, ERROR, UNDEFINED, ScoreTable
from music_evals.benchmark.task import Task
from music_evals.benchmark.tasks.songs.songs import EncoderSettings, Song, SongSet, SongSettings, predictions_text
from music_evals.benchmark.tasks.songs.tag_predictions import TAGS, plain_tags, tag_songs
from music_evals.benchmark.tasks.songs.text_controls import (
    ANOTHER_SONG,
    COMMON_TAGS,
    OWN_TAGS,
    RANDOM_TAGS,
    TAG_CONTROLS,
    against_another,
    against_own,
    without_another_song,
)
from music_evals.benchmark.tasks.songs.texts import TextSide, pairs_of_predictions, read_predictions
from music_evals.errors import InvalidInputError, InvalidTagsError, NoDataError, UnknownNameError, located
from music_evals.lyrics.embeddings import embed, load_encoder
from music_evals.metrics.catalogue import DESCRIPTION_SCORES
from music_evals.metrics.semantics import check_options
from music_evals.options import option
from music_evals.pipelines.descriptions import TOTAL, check_description, score_description
from music_evals.pipelines.tags import EXTRACTIONS, Vocabulary, extract_tags, vocabulary_of
from music_evals.protocols import TextEncoder

MODALITY = "tags"
AT_ONCE = 16
"""Songs that are written down together: each takes milliseconds."""

EXPECTED = '"professional": {dimension: [tags]}, "amateur": {...}'

UNSPOKEN = {group: f"the system does not speak for the {group} group" for group in GROUPS}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(EncoderSettings, SongSettings):
    """What to score, and how; the options of the verb ``describe`` by their keywords.

    Predictions are lines ``{"id": ..., "professional": {dimension: [tags]}, "amateur": {...}}``; one of the groups is
    enough. Without predictions the controls alone are scored.

    Parameters
    ----------
    text_tags
        One of `pipelines.tags.EXTRACTIONS`, for predictions that are free text, ``{"id": ..., "text": ...}``.
    models, audio, threshold, trust_remote_code
        ``DIR`` or ``NAME=DIR`` of taggers with weights, and what they hear; see `tag_predictions.tag_songs`.
    encoder, encoder_revision, device, cache
        See `lyrics.embeddings.load_encoder`.
    aggregation, normalize_by_self, empty
        See `pipelines.descriptions.tag_semantic_similarity`.

    Raises
    ------
    InvalidInputError
        Settings that contradict each other, or a number out of range.
    UnknownNameError
        An aggregation, or a way to take empty lists, that does not exist.
    """

    text_tags: str | None = option(
        None,
        'predictions may be free text, {"id": SONG, "text": ...}: find tags in it; vocabulary: those that annotators '
        "used anywhere in the data set (default: tags alone)",
        group="data",
        metavar="HOW",
    )
    models: Sequence[str | os.PathLike[str]] = option(
        (),
        "folder of a tagger with weights; may be given again; needs --audio",
        flag="--model",
        group="data",
        metavar="[NAME=]DIR",
    )
    audio: str | os.PathLike[str] | None = option(
        None, "folder of recordings, each called by the id of its song", group="data", metavar="DIR"
    )
    threshold: float | None = option(
        None, "probability from which on taggers give a tag (default: theirs)", group="data"
    )
    trust_remote_code: bool = option(False, "run Python code that comes with a tagger's music encoder", group="data")
    empty: str = option(
        "nan", "a list without tags is undefined, and so is the average of its song: nan (default); or zero, or raise"
    )

    TEXTS: ClassVar = {"predictions": predictions_text('"professional": {DIMENSION: [TAGS]}, "amateur": {...}')}
    GO_WITH: ClassVar = {
        **SongSettings.GO_WITH, "models": ("threshold", "trust_remote_code"), "predictions": ("text_tags",)
    }  # fmt: skip
    PATHS = ("out", "audio", "cache")

    def __post_init__(self) -> None:
        if self.dataset is None:
            raise InvalidInputError("give `dataset`: descriptions are scored against those that people gave")
        if bool(self.models) != (self.audio is not None):
            raise InvalidInputError("`models` and `audio` go together: a tagger hears recordings")
        if self.text_tags not in {None, *EXTRACTIONS}:
            raise UnknownNameError("way to find tags in a text", str(self.text_tags), EXTRACTIONS)
        check_options(self.aggregation, self.empty, normalize_by_self=self.normalize_by_self)
        super().__post_init__()

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of `score_description`."""
        return {"aggregation": self.aggregation, "normalize_by_self": self.normalize_by_self, "empty": self.empty}


class Descriptions(Task):
    """Tags of songs, against those that people gave."""

    name = "descriptions"
    settings = Settings
    title = "Music description"
    scales = DESCRIPTION_SCORES
    packages = ("music_evals", "numpy", "sentence-transformers", "transformers", "torch")
    controls = TAG_CONTROLS
    controls_explained = (
        f"{OWN_TAGS}: the tags of each song against themselves. Under the mean of all pairs that is below 1, and no "
        "strict ceiling: a description of a few tags that are near to all others can have more. "
        f"{ANOTHER_SONG}: the tags of the next song of another group, which is what a description has that knows "
        f"nothing of the song. {COMMON_TAGS} and {RANDOM_TAGS}: as many tags in each dimension as the song has, those "
        "that songs have most often, or drawn from those of all songs."
    )
    items = "songs"
    remarks = "dimensions that the reference leaves empty"

    def run(self, settings: Settings, *, progress: Progress | None = None) -> Outcome:
        """Score all descriptions and write records, results.json, table.md and report.html."""
        songs = settings.read_songs(GROUPS)
        out = Path(settings.out)
        words = vocabulary_of(song.tags for song in songs.songs) if settings.text_tags else None
        predictions = read_predictions(settings.predictions, functools.partial(_tags, words=words), EXPECTED)
        encoder = load_encoder(
            settings.encoder, revision=settings.encoder_revision, device=settings.device, cache=settings.cache
        )
        if settings.overwrite:  # before anything is heard: they would stand beside what another run made
            remove_results(out)
        if settings.audio is not None:
            given = {"threshold": settings.threshold, "trust_remote_code": settings.trust_remote_code or None}
            options = {name: value for name, value in given.items() if value is not None}
            predictions += tag_songs(
                settings.models, settings.audio, songs, out / TAGS, settings, options=options, progress=progress
            )
        # a group that a system leaves out of a song and describes in another is empty there
        spoken: dict[str, set[str]] = {}
        for prediction in predictions:
            spoken.setdefault(prediction.system, set()).update(prediction.value or ())
        for place, prediction in enumerate(predictions):
            if prediction.value is not None:
                groups = [group for group in GROUPS if group in spoken[prediction.system]]
                value = {group: prediction.value.get(group, {}) for group in groups}
                predictions[place] = dataclasses.replace(prediction, value=value)
        judged = pairs_of_predictions(predictions, songs, _own, modality=MODALITY, controls=TAG_CONTROLS)
        controls: list[Pair] = []
        if settings.controls:
            controls = against_own(songs.songs, _own, _own, system=OWN_TAGS, modality=MODALITY)
            controls += against_another(songs.songs, _own, _own, modality=MODALITY)
            controls += _without_listening(songs, settings.seed)
        if not judged.pairs and not judged.failures and not controls:
            raise NoDataError("nothing to score: give `predictions`, or leave the controls on")
        header = self.header(
            judged.dataset,
            settings.aggregation,
            DESCRIPTION_SCORES,
            encoder={"name": encoder.name, "revision": encoder.revision},
            options=settings.options | ({"text_tags": settings.text_tags} if settings.text_tags else {}),
        )
        scorer, scores = DescriptionScorer(encoder, settings.options), tuple(DESCRIPTION_SCORES)
        job = PairJob(
            header, judged, controls, scores, settings.aggregation, scorer, at_once=AT_ONCE, before=scorer.learn
        )
        return self.write(record(job, out / RECORDS, settings, progress=progress), settings, _render)

    def shown_metrics(self, scores: ScoreTable) -> tuple[str, ...]:
        """Return the scores of which any system has a value; all without a system."""
        unspoken = [place for place, text in enumerate(scores.matrix.texts) if text in UNSPOKEN.values()]
        judged, spoken = False, set()
        for pairs in (scores.of(system) for system in scores.systems if system not in scores.controls):
            for name in scores.metrics:
                scored = ~np.isin(pairs.states(name), (ABSENT, ERROR))
                judged |= bool(scored.any())
                if (scored & ~np.isin(pairs.messages(UNDEFINED, name), unspoken)).any():
                    spoken.add(name)
        return tuple(name for name in scores.metrics if name in spoken or not judged)

    def describe_run(self, header: Mapping[str, Any]) -> str:
        """Name aggregation and encoder."""
        encoder = header["encoder"]
        revision = f" at {encoder['revision']}" if encoder["revision"] else ""
        normalized = ", divided by self-similarity" if header["options"]["normalize_by_self"] else ""
        return f"aggregation {header['variant']}{normalized}, encoder {encoder['name']}{revision}"

    def published_scores(self, header: Mapping[str, Any]) -> dict[str, Any]:
        """Return the table of the MuChin paper."""
        return published_descriptions(header["metrics"])

    def control_notes(self, systems: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
        """Say where there is no other song to compare with."""
        return without_another_song(systems)


DESCRIPTIONS: Final = Descriptions()
"""The task."""


def _tags(row: Mapping[str, Any], where: str, *, words: Vocabulary | None = None) -> dict[str, Any]:
    given = {group: row[group] for group in GROUPS if row.get(group) is not None}
    if not given and isinstance(row.get("text"), str):
        if words is None:
            raise InvalidTagsError(f"{where}: free text; say how tags are found in it (`text_tags`), or give tags")
        try:
            given = extract_tags(row["text"], words)
        except InvalidTagsError as error:
            raise located(error, where) from error
    if not given:
        raise InvalidTagsError(
            f"{where}: neither {' nor '.join(GROUPS)}; expected {{dimension: [tags]}} under one of them or both"
        )
    return plain_tags(check_description(given, where))


def _own(song: Song) -> TextSide:
    return TextSide(song.id, plain_tags(song.tags))


def _without_listening(songs: SongSet, seed: int) -> Iterator[Pair]:
    """Yield what can be said of each song without it: tags that are common, and tags that are drawn."""
    described = {song.id: plain_tags(song.tags) for song in songs.songs}
    held: dict[tuple[str, str], Counter[str]] = {}
    for tags in described.values():
        for group, dimensions in tags.items():
            for name, values in dimensions.items():
                held.setdefault((group, name), Counter()).update(values)
    for system in (COMMON_TAGS, RANDOM_TAGS):
        for song in songs.songs:
            description: dict[str, dict[str, list[str]]] = {}
            for group, dimensions in described[song.id].items():
                for name, own in dimensions.items():
                    counts, n = held[group, name], len(set(own))
                    order = sorted(counts, key=lambda tag: (-counts[tag], tag))
                    sampled = random.Random(f"{seed} {song.id} {group} {name}").sample(order, n)
                    description.setdefault(group, {})[name] = order[:n] if system == COMMON_TAGS else sampled
            yield Pair(song.id, system, song.group, MODALITY, _own(song), TextSide(f"{song.id}, {system}", description))


class DescriptionScorer:
    """Compares the tags of both sides of a pair, by the vectors of all tags of the run, which it learns first."""

    def __init__(self, encoder: TextEncoder, options: Mapping[str, Any]) -> None:
        self.name, self.revision = encoder.name, encoder.revision
        self._options = options
        self._encoder: TextEncoder | None = encoder
        self._vectors = embed(encoder, ())

    def learn(self, pairs: Sequence[Pair], _: Progress | None) -> None:
        """Encode each distinct tag of the pairs."""
        if self._encoder is not None:
            tags = (
                tag
                for pair in pairs
                for side in (pair.reference, pair.estimate)
                for group, names in SCORED.items()
                for name in names
                for tag in side.value.get(group, {}).get(name, ())
            )
            self._vectors = embed(self._encoder, tags)
        self._encoder = None  # let go: other processes need the vectors alone

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the vectors of tags that were learned, shape (n, dimensions)."""
        return self._vectors.of(texts)

    def __call__(self, pair: Pair) -> dict[str, Any]:
        """Return an answer as in `rows.Scorer`."""
        reference, estimate = pair.reference.value, pair.estimate.value
        spoken = [group for group in GROUPS if group in estimate]
        silent = [group for group in GROUPS if group not in estimate]
        scores: dict[str, dict[str, Any]] = {}
        notes: list[str] = []
        for group in silent:
            own = (name for name in DESCRIPTION_SCORES if name.startswith((f"{group}/", f"{group}_")))
            scores |= dict.fromkeys(own, score_or_reason(math.nan, UNSPOKEN[group]))
        if spoken:
            judged = score_description(reference, estimate, encoder=self, annotators=spoken, **self._options)
            values, reasons = judged.values, judged.reasons
            scores |= {name: score_or_reason(value, reasons.get(name, "")) for name, value in values.items()}
            notes = [
                f"{group}: {len(SCORED[group]) - n} of {len(SCORED[group])} dimensions are in no average, as the "
                "reference has no tags there"
                for group, n in judged.n_dimensions.items()
                if n < len(SCORED[group])
            ]
        if silent:
            scores[TOTAL] = score_or_reason(math.nan, UNSPOKEN[silent[0]])
        return {"scores": scores, "notes": notes}


def _render(results: Mapping[str, Any], score_table: ScoreTable) -> str:
    encoder = results["encoder"]
    facts = {
        "aggregation": results["variant"],
        "encoder": encoder["name"],
        "revision of the encoder": encoder["revision"] or "none",
        **{name: value for name, value in results["options"].items() if name != "aggregation"},
    }
    return score_page(results, score_table, facts)
