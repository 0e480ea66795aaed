"""Edits by the texts that were asked for, and by the layers of an encoder: recordings in, scores with intervals out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.audio.io import Audio, AudioPolicy, load_audio
from music_evals.errors import InvalidInputError, MusicEvalsError, UndefinedMetricWarning, UnsupportedTypeError, located
from music_evals.metrics import text_audio as metrics
from music_evals.pipelines.edit_success import clusters_of, load_sides, unrelated
from music_evals.pipelines.intervals import check_pairs, mean_of_defined, report_means
from music_evals.protocols import (
    DEFAULT_TEXT_AUDIO_ENCODER,
    TEXT_AUDIO_ENCODERS,
    LayeredEncoder,
    TextAudioEncoder,
    load_plugin,
)
from music_evals.stats.intervals import check_confidence

__all__ = ["Recording", "evaluate_lpaps", "evaluate_text_similarity"]

SIMILARITY: Final = "text_audio_similarity"
DIRECTION: Final = "text_direction"
RANK: Final = "instruction_rank"
LPAPS: Final = "lpaps"

Recording = str | os.PathLike[str] | Audio
"""A file, or what was read from one."""
Floats = npt.NDArray[np.float32]


class _Pair(NamedTuple):
    """Embeddings of one item."""

    source_text: Floats | None  # None where it was not given
    text: Floats
    original: Floats
    edit: Floats


def evaluate_text_similarity(
    references: Iterable[Recording],
    predictions: Iterable[Recording],
    texts: Iterable[str],
    *,
    source_texts: Iterable[str | None] | None = None,
    encoder: TextAudioEncoder | str = DEFAULT_TEXT_AUDIO_ENCODER,
    groups: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    per_item: bool = False,
) -> dict[str, Any]:
    """Measure how much edits sound like the texts that were asked for.

    Parameters
    ----------
    references, predictions
        The originals and the edited recordings; of paths, the peak is scaled to 1.
    texts
        What each edit is to sound like, or its instruction.
    source_texts
        What each original sounds like; None, or None for an item, leaves `text_direction` undefined.
    encoder
        A `TextAudioEncoder`, or a Hub id or folder as `models.encoders.text_audio.load_text_audio_encoder` takes it.
    groups
        Cluster of each pair, shape (n,); None makes the edits of one original a cluster.
    confidence
        Nominal coverage of the intervals, above 0 and below 1.
    per_item
        True adds the scores of each pair, with the reasons of those that are NaN.

    Returns
    -------
    dict
        ``text_audio_similarity``, ``text_direction`` and ``instruction_rank`` (`metrics.text_audio`), means over pairs,
        with ``_ci``, ``_n``, ``_n_defined`` and ``_n_clusters``. ``text_audio_similarity_chance`` and
        ``text_direction_chance``: means of edits of other music, up to 10 for each pair, NaN where there is one group.
        ``text_audio_similarity_original``: the mean of the originals as they are. ``encoder``: its name, revision,
        window and precision.

    Raises
    ------
    PairCountError, NoDataError
        References, predictions, texts and groups differ in number, or are empty.
    InvalidInputError, UnsupportedTypeError
        A text that is empty, or a source that is no recording.
    UnreadableFileError, FileTooLargeError, InvalidAudioError
        What is wrong with a recording, or that it is too short; names its place.
    ModelUnavailableError, MissingBackendError
        The encoder cannot be had.

    Warns
    -----
    UndefinedMetricWarning
        A score is NaN because no pair defines it.
    """
    check_confidence(confidence)
    originals, edits, wanted = list(references), list(predictions), list(texts)
    known = [None] * len(wanted) if source_texts is None else list(source_texts)
    check_pairs(originals, edits, "predictions", "a pair", "there are no pairs; give at least one")
    for name, given in (("texts", wanted), ("source_texts", known)):
        check_pairs(originals, given, name, "a pair", "")
        for index, text in enumerate(given):
            if (text is None and name == "texts") or (text is not None and not text.strip()):
                raise InvalidInputError(f"{name}[{index}]: the text is empty; say what the music is to sound like")
    loaded = _load(encoder)
    distinct = list(dict.fromkeys(text for text in (*wanted, *known) if text is not None))
    vectors: dict[str | None, Any] = dict(zip(distinct, loaded.encode_texts(distinct), strict=True))
    sides = load_sides(originals, edits, lambda source: _encoded(loaded, source))
    rows = zip(known, wanted, *sides, strict=True)
    pairs = [_Pair(vectors.get(before), vectors[text], first[0], second[0]) for before, text, first, second in rows]
    clusters = clusters_of(groups, [content for _, content in sides[0]])
    scores, others = [], []
    for index, (pair, text) in enumerate(zip(pairs, wanted, strict=True)):
        rivals = np.array([vectors[other] for other in dict.fromkeys(wanted) if other != text])
        scores.append(_scores(pair) | {RANK: _reasoned(metrics.instruction_rank, pair.text, rivals, pair.edit)})
        apart = [pairs[place] for place in unrelated(clusters, index)]
        others.append([_scores(pair._replace(original=other.original, edit=other.edit)) for other in apart])
    columns = np.array([[value for value, _ in row.values()] for row in scores])
    result = report_means([SIMILARITY, DIRECTION, RANK], columns, clusters, confidence)
    for name in (SIMILARITY, DIRECTION):
        means = [mean_of_defined([row[name][0] for row in tried]) for tried in others]
        result[f"{name}_chance"] = mean_of_defined(means)
    unchanged = [metrics.text_audio_similarity(pair.text, pair.original) for pair in pairs]
    result |= {f"{SIMILARITY}_original": mean_of_defined(unchanged), "encoder": dict(loaded.about)}
    if per_item:
        result["per_item"] = [_item(row) for row in scores]
    return result


def evaluate_lpaps(
    references: Iterable[Recording],
    predictions: Iterable[Recording],
    *,
    encoder: LayeredEncoder | str = DEFAULT_TEXT_AUDIO_ENCODER,
    groups: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    per_item: bool = False,
) -> dict[str, Any]:
    """Measure how far edits went from their originals in the layers of an encoder (`metrics.text_audio.lpaps`).

    Both recordings are cut to the length of the shorter, and compared window by window.

    Parameters
    ----------
    references, predictions, encoder, groups, confidence, per_item
        As in `evaluate_text_similarity`, whose errors these are; an encoder without layers is an `InvalidInputError`.

    Returns
    -------
    dict
        ``lpaps``, the mean over pairs of the mean over windows, with ``_ci``, ``_n``, ``_n_defined`` and
        ``_n_clusters``; NaN for a silent original. ``lpaps_chance``: that of an edit of other music for each pair, NaN
        where there is one group. ``encoder``: as in `evaluate_text_similarity`.

    Warns
    -----
    UndefinedMetricWarning
        The score is NaN because no pair defines it.
    """
    check_confidence(confidence)
    originals, edits = list(references), list(predictions)
    check_pairs(originals, edits, "predictions", "a pair", "there are no pairs; give at least one")
    loaded = _load(encoder)
    if not isinstance(loaded, LayeredEncoder):
        raise InvalidInputError(f"the encoder {loaded.about['name']!r} hands out no layers; take a CLAP")
    rows = [_distance(loaded, *pair, f"pair {index}") for index, pair in enumerate(zip(originals, edits, strict=True))]
    clusters = clusters_of(groups, [content for *_, content in rows])
    result = report_means([LPAPS], np.array([[value] for value, *_ in rows]), clusters, confidence)
    chance = [
        _distance(loaded, original, edits[other], f"pair {index}")[0]
        for index, original in enumerate(originals)
        for other in unrelated(clusters, index)[:1]  # recordings are too long to hold the layers of many
    ]
    result |= {f"{LPAPS}_chance": mean_of_defined(chance), "encoder": dict(loaded.about)}
    if per_item:
        result["per_item"] = [_item({LPAPS: (value, reason)}) for value, reason, _ in rows]
    return result


def _load(encoder: TextAudioEncoder | str) -> TextAudioEncoder:
    if not isinstance(encoder, str):
        return encoder
    loaded: TextAudioEncoder = load_plugin(TEXT_AUDIO_ENCODERS, "hub", "encoder of texts and recordings")(encoder)
    return loaded


def _encoded(encoder: TextAudioEncoder, source: Recording) -> tuple[Floats, str]:
    """Return the vector of a recording, zeros for silence, and its content."""
    audio = _heard(encoder, source)
    vector = encoder.encode_audio(audio.samples)
    return np.zeros_like(vector) if audio.silent else vector, audio.content_hash


def _heard(encoder: TextAudioEncoder, source: Recording) -> Audio:
    if isinstance(source, Audio):
        return source.at_rate(encoder.rate)
    if not isinstance(source, str | os.PathLike):
        raise UnsupportedTypeError(
            f"expected a path or an Audio, got {type(source).__name__}; scores are rendered first"
        )
    return load_audio(source, policy=AudioPolicy(sample_rate=encoder.rate))


def _scores(pair: _Pair) -> dict[str, tuple[float, str]]:
    """Return the scores of a pair alone, each with the reason where it is NaN."""
    direction = (float("nan"), "what the original sounds like was not given")
    if pair.source_text is not None:
        direction = _reasoned(metrics.text_direction, pair.source_text, pair.text, pair.original, pair.edit)
    return {SIMILARITY: (metrics.text_audio_similarity(pair.text, pair.edit), ""), DIRECTION: direction}


def _reasoned(metric: Callable[..., float], *inputs: npt.ArrayLike) -> tuple[float, str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UndefinedMetricWarning)
        value = metric(*inputs)
    return value, "; ".join(str(warning.message) for warning in caught)


def _distance(
    encoder: LayeredEncoder, reference: Recording, prediction: Recording, place: str
) -> tuple[float, str, str]:
    """Return the mean distance over windows, why it is NaN, and the content of the original."""
    try:
        original, edit = (_heard(encoder, source) for source in (reference, prediction))
        if original.silent:
            return float("nan"), "the original is silent", original.content_hash
        length = min(len(original.samples), len(edit.samples))
        windows = zip(*(encoder.layers(side.samples[:length]) for side in (original, edit)), strict=True)
        return float(np.mean([metrics.lpaps(first, second) for first, second in windows])), "", original.content_hash
    except MusicEvalsError as error:
        raise located(error, place) from error


def _item(scores: Mapping[str, tuple[float, str]]) -> dict[str, Any]:
    values: dict[str, Any] = {name: value for name, (value, _) in scores.items()}
    return values | {"reasons": {name: reason for name, (_, reason) in scores.items() if reason}}
