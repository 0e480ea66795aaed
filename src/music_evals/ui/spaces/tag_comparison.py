"""Descriptions of music as typed text: read within limits, compared dimension by dimension, as values and as code."""

from __future__ import annotations

import functools
import json
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import DIMENSIONS, GROUPS
from music_evals.errors import InvalidTagsError, UndefinedMetricWarning, UnknownNameError
from music_evals.lyrics.embeddings import CHAR_NGRAMS, DEFAULT_ENCODER, embed, load_encoder
from music_evals.metrics.semantics import AGGREGATIONS, SemanticSimilarity, cosine_matrix
from music_evals.numerics import package_versions
from music_evals.pipelines.descriptions import score_description, tag_semantic_similarity
from music_evals.protocols import TextEncoder
from music_evals.ui.gpu import on_gpu
from music_evals.ui.spaces.words_muchin import DESCRIPTION_WORDS

MAX_CHARACTERS: Final = 6000  # of a description
MAX_TAGS: Final = 200  # of a description; people give about 40
MAX_TAGS_A_DIMENSION: Final = 50
MAX_TAG_CHARACTERS: Final = 60
LIST: Final = "tags"  # key of a list of tags that stands under no dimension
PACKAGES: Final = ("music_evals", "numpy", "sentence-transformers", "transformers", "torch")
Tags = dict[str, list[str]]
Say = Callable[..., str]
Floats = npt.NDArray[np.float32]


class Compared(NamedTuple):
    """Two descriptions that were compared."""

    group: str  # one of `annotations.GROUPS`; empty where the two are lists of tags without dimensions
    generated: Tags
    reference: Tags
    similarities: Mapping[str, SemanticSimilarity]  # by dimension
    cosines: Mapping[str, Floats]  # by dimension, shape (generated tags, reference tags)
    average: float
    """Over the dimensions of table 2 that the reference has tags for; NaN where it is undefined, and for a list."""
    encoder: str
    revision: str
    aggregation: str


@functools.cache
def _bge_commit() -> str | None:
    """Return the commit of the BGE weights in the cache of the Hub, None where they are not all there."""
    import huggingface_hub

    config = huggingface_hub.try_to_load_from_cache(DEFAULT_ENCODER, "modules.json")
    weights = [
        huggingface_hub.try_to_load_from_cache(DEFAULT_ENCODER, name)
        for name in ("model.safetensors", "pytorch_model.bin")
    ]
    if not isinstance(config, str) or not any(isinstance(path, str) for path in weights):
        return None
    return Path(config).parent.name  # the cache names a snapshot by its commit


def available_encoders() -> list[str]:
    """Return the encoders that work on this machine without fetching anything, the one to begin with first."""
    return [DEFAULT_ENCODER, CHAR_NGRAMS] if _bge_commit() is not None else [CHAR_NGRAMS]


@functools.cache
def _encoder(name: str) -> TextEncoder:
    """Return an encoder of this machine, loaded once."""
    if name not in available_encoders():
        raise UnknownNameError("text encoder", name, available_encoders(), "weights must be on this machine")
    return load_encoder(name, revision=None if name == CHAR_NGRAMS else _bge_commit())


@on_gpu(lambda _name, texts: math.ceil(len(texts) / 64), call_sec=1.0)  # 64 at once
def _encode_on_gpu(name: str, texts: Sequence[str]) -> Floats:
    """Encode on the card; where there is one, the encoder is on it from the moment that it was loaded."""
    return np.asarray(_encoder(name).encode(texts), dtype=np.float32)


class _OnCard:
    """An encoder that takes a card for each call."""

    def __init__(self, encoder: TextEncoder) -> None:
        self.name, self.revision = encoder.name, encoder.revision

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of texts, shape (n, dimensions)."""
        return _encode_on_gpu(self.name, list(texts))


def page_encoder(name: str) -> TextEncoder:
    """Return one of `available_encoders`, which takes a card where it can use one; a page fetches no weights."""
    loaded = _encoder(name)  # in this process, before a card is taken
    return loaded if name == CHAR_NGRAMS else _OnCard(loaded)


def parse_description(text: str, group: str, language: str = "en") -> Tags:
    """Read the description of a group from text, one dimension a line, ``name: tag, tag``."""
    t = DESCRIPTION_WORDS(language)
    if group not in GROUPS:
        raise UnknownNameError("group of annotators", group, GROUPS)
    if len(text or "") > MAX_CHARACTERS:
        raise InvalidTagsError(t("error_text", n=len(text), most=MAX_CHARACTERS))
    lines = [(number, line) for number, line in enumerate((text or "").splitlines(), start=1) if line.strip()]
    named = any(re.search("[:：]", line) for _, line in lines)
    tags: Tags = {}
    for number, line in lines:
        try:
            _read_line(line, group, tags, t, language, named=named)
        except InvalidTagsError as error:
            raise InvalidTagsError(t("error_line", line=number, what=str(error))) from None
    if (total := sum(map(len, tags.values()))) > MAX_TAGS:
        raise InvalidTagsError(t("error_tags", n=total, most=MAX_TAGS))
    return tags


def _read_line(line: str, group: str, description: Tags, t: Say, language: str, *, named: bool) -> None:
    """Add the tags of a line to those that were found."""
    head, colon, rest = re.sub("：", ":", line, count=1).partition(":")
    if not named:
        name, rest = LIST, line
    elif not colon:
        raise InvalidTagsError(t("error_mixed"))
    else:
        wanted = head.strip().casefold()
        meant = [
            row.name for row in DIMENSIONS[group].values() if wanted in {row.name, row.english.casefold(), row.chinese}
        ]
        if not meant:
            known = ", ".join(title_of(group, known, language) for known in DIMENSIONS[group])
            raise InvalidTagsError(t("error_dimension", name=head.strip()[:40], group=t(group), known=known))
        name = meant[0]
        if name in description:
            raise InvalidTagsError(t("error_twice", name=head.strip()))
    tags = [tag for part in re.split("[,，、;；]", rest) if (tag := part.strip())]
    for tag in tags:
        if len(tag) > MAX_TAG_CHARACTERS:
            raise InvalidTagsError(t("error_tag", n=len(tag), most=MAX_TAG_CHARACTERS, tag=f"{tag[:20]}..."))
    description.setdefault(name, []).extend(tags)
    if len(description[name]) > MAX_TAGS_A_DIMENSION:
        raise InvalidTagsError(t("error_tags", n=len(description[name]), most=MAX_TAGS_A_DIMENSION))


def title_of(group: str, name: str, language: str) -> str:
    """Return what a dimension is called on the page; the list of tags where there is no group."""
    if not group or name == LIST:
        return DESCRIPTION_WORDS(language)("list")
    dimension = DIMENSIONS[group][name]
    return dimension.chinese if language == "zh" else dimension.english


def write_description(tags: Mapping[str, Sequence[str]], group: str, language: str = "en") -> str:
    """Return tags as text that `parse_description` reads; dimensions that the group does not have are left out."""
    return "\n".join(
        f"{title_of(group, name, language)}: {'、'.join(values)}"
        for name, values in tags.items()
        if name in DIMENSIONS[group] and values
    )


def compare(
    generated: Tags, reference: Tags, group: str, encoder: str = CHAR_NGRAMS, aggregation: str = "mean"
) -> Compared:
    """Compare two descriptions dimension by dimension; `group` is empty for two lists without dimensions."""
    if aggregation not in AGGREGATIONS:
        raise UnknownNameError("aggregation", aggregation, AGGREGATIONS)
    loaded = page_encoder(encoder)
    names = [name for name in (DIMENSIONS[group] if group else (LIST,)) if name in generated or name in reference]
    vectors = embed(loaded, (tag for side in (generated, reference) for name in names for tag in side.get(name, ())))
    options: dict[str, Any] = {"encoder": _Known(loaded, vectors), "aggregation": aggregation}
    cosines = {
        name: cosine_matrix(vectors.of(generated.get(name, ())), vectors.of(reference.get(name, ()))) for name in names
    }
    if not group:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)  # the page tells the reason
            similarity = tag_semantic_similarity(reference.get(LIST, []), generated.get(LIST, []), **options)
        similarities, average = {LIST: similarity}, math.nan
    else:
        sides = {group: reference}, {group: generated}
        average = score_description(*sides, annotators=[group], **options).values[f"{group}_average"]
        every = score_description(*sides, annotators=[group], dimensions={group: names}, **options)
        similarities = {name: every.similarities[f"{group}/{name}"] for name in names}
    about = similarities, cosines, average, loaded.name, loaded.revision, aggregation
    return Compared(group, generated, reference, *about)


class _Known:
    """An encoder that has met all tags: it hands out their vectors."""

    def __init__(self, encoder: TextEncoder, vectors: Any) -> None:
        self.name, self.revision, self._vectors = encoder.name, encoder.revision, vectors

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of tags that are known, shape (n, dimensions)."""
        vectors: Floats = self._vectors.of(list(texts))
        return vectors


def results_of(comparison: Compared) -> dict[str, Any]:
    """Return scores, tags, cosines and options as JSON can hold them; undefined is NaN."""
    return {
        "average": comparison.average,
        "group": comparison.group or None,
        "scores": {name: each._asdict() for name, each in comparison.similarities.items()},
        "cosines": {name: matrix.tolist() for name, matrix in comparison.cosines.items()},
        "range": [-1, 1],
        "direction": "higher is better",
        "generated": comparison.generated,
        "reference": comparison.reference,
        "encoder": {"name": comparison.encoder, "revision": comparison.revision},
        "aggregation": comparison.aggregation,
        "versions": package_versions(PACKAGES),
    }


def code_of(comparison: Compared) -> tuple[str, str]:
    """Return Python and a command line that give the same scores."""
    sides = {"generated": comparison.generated, "reference": comparison.reference}
    if comparison.group:
        function, printed = "score_description", "dict(result.values)"
        typed = {side: repr({comparison.group: tags}) for side, tags in sides.items()}
    else:
        function, printed = "tag_semantic_similarity", "result.value"
        typed = {side: repr(tags.get(LIST, [])) for side, tags in sides.items()}
    python = (
        f"from music_evals.pipelines.descriptions import {function}\n\n"
        + "".join(f"{side} = {tags}\n" for side, tags in typed.items())
        + f"result = {function}(reference, generated, encoder={comparison.encoder!r}, "
        f"aggregation={comparison.aggregation!r})\nprint({printed})\n"
    )
    if not comparison.group:
        return python, f"python - <<'END_OF_PYTHON'\n{python}END_OF_PYTHON\n"
    empty: dict[str, Any] = {group: {"dimensions": {}} for group in GROUPS}
    people = {name: {"tags": tags} for name, tags in comparison.reference.items()}
    song = json.dumps({"id": "song", **empty, comparison.group: {"dimensions": people}}, ensure_ascii=False)
    tagged = json.dumps({"id": "song", comparison.group: comparison.generated}, ensure_ascii=False)
    return python, (
        f"cat > songs.jsonl <<'END_OF_JSON'\n{song}\nEND_OF_JSON\n"
        f"cat > tags.jsonl <<'END_OF_JSON'\n{tagged}\nEND_OF_JSON\n"
        "music-evals describe --dataset songs.jsonl --predictions mine=tags.jsonl --no-controls \\\n"
        f"  --encoder {comparison.encoder} --aggregation {comparison.aggregation} --out results/description\n"
    )
