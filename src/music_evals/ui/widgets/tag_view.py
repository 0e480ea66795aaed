"""How tags and their similarities look: tables, matrices of cosines and tags of songs, as HTML."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.annotations import DIMENSIONS, GROUPS, SCORED
from music_evals.benchmark.tasks.songs.songs import Song
from music_evals.lyrics.embeddings import CHAR_NGRAMS
from music_evals.ui.spaces.tag_comparison import Compared, Say, Tags, compare, title_of
from music_evals.ui.spaces.words_muchin import DESCRIPTION_WORDS
from music_evals.ui.widgets.lyric_view import inert


def table_html(comparison: Compared | None, language: str = "en") -> str:
    """Return the scores by dimension as HTML, undefined ones with their reason; nothing before there are any."""
    if comparison is None:
        return ""
    t = DESCRIPTION_WORDS(language)
    rows = [_score_row(comparison, name, t, language) for name in comparison.similarities]
    return inert(
        "tag_scores.html", average=_average(comparison, t, language) if comparison.group else "", rows=rows, t=t
    )


def _average(comparison: Compared, t: Say, language: str) -> str:
    """Return the average, or why it is undefined."""
    if not math.isnan(comparison.average):
        return f"{t('average')}: {comparison.average:.3f}"
    silent = [
        title_of(comparison.group, name, language)
        for name, each in comparison.similarities.items()
        if name in SCORED[comparison.group] and each.n_reference and not each.n_generated
    ]
    return t("average_missing", names=", ".join(silent)) if silent else t("average_none")


def _score_row(comparison: Compared, name: str, t: Say, language: str) -> dict[str, Any]:
    """Return the numbers of a dimension, and what has to be said of them."""
    similarity = comparison.similarities[name]
    remarks = []
    if math.isnan(similarity.value):
        empty = not similarity.n_generated, not similarity.n_reference
        remarks.append(t("reason_both" if all(empty) else "reason_generated" if empty[0] else "reason_reference"))
    if comparison.group and name not in SCORED[comparison.group]:
        remarks.append(t("unscored"))
    numbers = [_number(value, t) for value in (similarity.value, similarity.precision, similarity.recall)]
    return {
        "name": name,
        "title": title_of(comparison.group, name, language),
        "remark": ". ".join(remarks),
        "numbers": [*numbers, f"{similarity.n_generated} / {similarity.n_reference}"],
    }


def _number(value: float, t: Say) -> str:
    """Return a cosine with three decimals, or that it is undefined."""
    return t("undefined") if math.isnan(value) else f"{value:.3f}"


def matrix_html(comparison: Compared | None, name: str | None, language: str = "en") -> str:
    """Return the cosines of all pairs of tags of a dimension as HTML, and each tag with its best match."""
    t = DESCRIPTION_WORDS(language)
    if comparison is None:
        return inert("song_empty.html", text=t("no_result"))
    cosines = comparison.cosines.get(name or "")
    if name is None or cosines is None or not cosines.size:
        return inert("song_empty.html", text=t("matrix_empty"))
    first, second = comparison.generated[name], comparison.reference[name]
    of_row, of_column = cosines.argmax(axis=1), cosines.argmax(axis=0)
    rows = [
        (tag, [_cell(cosines[i, j], row=of_row[i] == j, column=of_column[j] == i) for j in range(len(second))])
        for i, tag in enumerate(first)
    ]
    return inert(
        "tag_matrix.html",
        caption=t("matrix", dimension=title_of(comparison.group, name, language)),
        columns=second,
        rows=rows,
        best={"best_a": _best(first, second, cosines), "best_b": _best(second, first, cosines.T)},
        t=t,
    )


def _cell(cosine: float, *, row: bool, column: bool) -> dict[str, Any]:
    """Return a cosine, the signs of best matches, and the share of its colour in percent."""
    return {
        "cosine": cosine,
        "signs": f"{'▸' if row else ''}{'▾' if column else ''}",
        "share": round(70 * max(float(cosine), 0.0)),
    }


def _best(own: Sequence[str], other: Sequence[str], cosines: npt.NDArray[np.float32]) -> list[tuple[str, str, float]]:
    """Return each tag with its best match and their cosine."""
    return [
        (tag, other[at], cosines[i, at]) for i, (tag, at) in enumerate(zip(own, cosines.argmax(axis=1), strict=True))
    ]


def song_html(song: Song, encoder: str = CHAR_NGRAMS, language: str = "en") -> str:
    """Return the tags of a song as HTML, both groups side by side, with the cosine of both if both groups have tags."""
    t = DESCRIPTION_WORDS(language)
    sides = {group: {name: list(tags) for name, tags in song.tags.get(group, {}).items()} for group in GROUPS}
    ours, theirs = sides.values()
    shared = {name: tags for name, tags in theirs.items() if name in ours}
    similarities = compare({name: ours[name] for name in shared}, shared, "professional", encoder).similarities
    rows = [
        {
            "name": name,
            "title": title_of(next(group for group in GROUPS if name in DIMENSIONS[group]), name, language),
            "remark": f"{t('both')}: {_number(similarities[name].value, t)}"
            if name in similarities
            else t("one_group"),
            "sides": [(group, side[name]) for group, side in sides.items() if name in side],
        }
        for name in dict.fromkeys(name for group in GROUPS for name in DIMENSIONS[group])
    ]
    return inert("tag_song.html", song=song, rows=rows, t=t)


def tags_html(tags: Mapping[str, Tags], language: str = "en") -> str:
    """Return tags of both groups as HTML, dimension by dimension; dimensions without tags are left out."""
    t = DESCRIPTION_WORDS(language)
    if not any(values for named in tags.values() for values in named.values()):
        return inert("song_empty.html", text=t("probe_nothing"))
    groups = [
        (group, [(title_of(group, name, language), values) for name, values in named.items() if values])
        for group, named in tags.items()
    ]
    return inert("tag_list.html", groups=groups, t=t)
