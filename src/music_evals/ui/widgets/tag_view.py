"""How tags and their similarities look: tables, matrices of cosines, tags of songs, as HTML. All text is escaped."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import DIMENSIONS, GROUPS, SCORED
from music_evals.benchmark.songs.songs import Song
from music_evals.lyrics.embeddings import CHAR_NGRAMS
from music_evals.ui.spaces.tag_comparison import Compared, Say, Tags, compare, title_of
from music_evals.ui.spaces.words_muchin import DESCRIPTION_WORDS
from music_evals.ui.widgets.lyric_view import escape

__all__ = [
    "VIEW_CSS",
    "matrix_html",
    "song_html",
    "table_html",
    "tags_html",
]

VIEW_CSS: Final = """
.tg {font-size: var(--text-md); color: var(--body-text-color); overflow-wrap: anywhere}
.tg h3 {margin: .8rem 0 .3rem; font-size: 1.05em}
.tg ul {list-style: none; margin: 0; padding: 0}
.tg-small {font-size: .85em; color: var(--body-text-color-subdued)}
.tg-row {display: flex; flex-wrap: wrap; gap: .3rem 1rem; padding: .5rem 0;
  border-bottom: 1px solid var(--border-color-primary)}
.tg-name {flex: 1 1 9rem; font-weight: 600}
.tg-side {flex: 2 1 9rem}
.tg-chips {display: flex; flex-wrap: wrap; gap: .25rem}
.tg-chips li {padding: .1rem .5rem; border: 1px solid var(--body-text-color-subdued); border-radius: 1rem}
.tg-scroll {overflow-x: auto; max-width: 100%}
.tg table {border-collapse: collapse; width: auto}
.tg th, .tg td {padding: .3rem .5rem; text-align: left; border: 1px solid var(--border-color-primary)}
.tg td.tg-n {text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap}
.tg td.tg-cell {background: color-mix(in srgb, var(--color-accent) var(--share), transparent)}
.tg-total {font-size: 1.4em; font-weight: 700}
.tg-plain {border-left: .3rem solid #c2410c; padding-left: .6rem}
"""


def table_html(found: Compared, language: str = "en") -> str:
    """Return the scores by dimension as HTML, undefined ones with their reason."""
    t = DESCRIPTION_WORDS(language)
    keys = ("dimension", "score", "precision", "recall", "counts")
    head = "".join(f'<th scope="col">{escape(t(key))}</th>' for key in keys)
    rows = "".join(_score_row(found, name, t, language) for name in found.similarities)
    average = ""
    if found.group:
        average = f'<p class="tg-total" id="average">{escape(_average_told(found, t, language))}</p>'
    return (
        f'<div class="tg" id="scores_view">{average}<div class="tg-scroll"><table><thead><tr>{head}</tr></thead>'
        f'<tbody>{rows}</tbody></table></div><p class="tg-small">{escape(t("range"))}</p></div>'
    )


def _average_told(found: Compared, t: Say, language: str) -> str:
    """Return the average, or why there is none."""
    if not math.isnan(found.average):
        return f"{t('average')}: {found.average:.3f}"
    silent = [
        title_of(found.group, name, language)
        for name, each in found.similarities.items()
        if name in SCORED[found.group] and each.n_reference and not each.n_generated
    ]
    return t("average_missing", names=", ".join(silent)) if silent else t("average_none")


def _score_row(found: Compared, name: str, t: Say, language: str) -> str:
    similarity = found.similarities[name]
    remark = "" if not found.group or name in SCORED[found.group] else t("unscored")
    value = f"{similarity.value:.3f}"
    if math.isnan(similarity.value):
        empty = not similarity.n_generated, not similarity.n_reference
        key = "reason_both" if all(empty) else "reason_generated" if empty[0] else "reason_reference"
        value, remark = t("undefined"), f"{t(key)}. {remark}".rstrip(". ") if remark else t(key)
    small = f'<div class="tg-small">{escape(remark)}</div>' if remark else ""
    numbers = [value, *(_number(each, t) for each in (similarity.precision, similarity.recall))]
    cells = "".join(f'<td class="tg-n">{escape(each)}</td>' for each in numbers)
    counts = f"{similarity.n_generated} / {similarity.n_reference}"
    title = escape(title_of(found.group, name, language))
    return (
        f'<tr data-dimension="{escape(name)}"><th scope="row">{title}{small}</th>{cells}'
        f'<td class="tg-n">{counts}</td></tr>'
    )


def _number(value: float, t: Say) -> str:
    return t("undefined") if math.isnan(value) else f"{value:.3f}"


def matrix_html(found: Compared | None, name: str | None, language: str = "en") -> str:
    """Return the cosines of all pairs of tags of a dimension as HTML, and each tag with its best match."""
    t = DESCRIPTION_WORDS(language)
    if found is None:
        return f'<div class="tg"><p>{escape(t("no_result"))}</p></div>'
    cosines = found.cosines.get(name or "")
    if name is None or cosines is None or not cosines.size:
        return f'<div class="tg"><p>{escape(t("matrix_empty"))}</p></div>'
    first, second = found.generated[name], found.reference[name]
    rows, columns = cosines.argmax(axis=1), cosines.argmax(axis=0)
    head = "".join(f'<th scope="col">{escape(tag)}</th>' for tag in second)
    body = "".join(
        f'<tr><th scope="row">{escape(tag)}</th>'
        + "".join(_cell(cosines[i, j], row=rows[i] == j, column=columns[j] == i) for j in range(len(second)))
        + "</tr>"
        for i, tag in enumerate(first)
    )
    caption = escape(t("matrix", dimension=title_of(found.group, name, language)))
    best = "".join(
        f"<h3>{escape(t('best'))}: {escape(t(key))}</h3><ul>{_best(own, other, matrix, t)}</ul>"
        for key, own, other, matrix in (("best_a", first, second, cosines), ("best_b", second, first, cosines.T))
    )
    return (
        f'<div class="tg" id="matrix_view"><div class="tg-scroll"><table><caption>{caption}</caption>'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        f'<p class="tg-small">{escape(t("matrix_legend"))}</p>{best}</div>'
    )


def _cell(cosine: float, *, row: bool, column: bool) -> str:
    signs = f"{'▸' if row else ''}{'▾' if column else ''}"
    share = round(70 * max(float(cosine), 0.0))
    return f'<td class="tg-n tg-cell" style="--share:{share}%">{signs} {cosine:.2f}</td>'


def _best(own: Sequence[str], other: Sequence[str], cosines: npt.NDArray[np.float32], t: Say) -> str:
    return "".join(
        f"<li>{escape(t('best_of', tag=tag, match=other[at], cosine=f'{cosines[i, at]:.3f}'))}</li>"
        for i, (tag, at) in enumerate(zip(own, cosines.argmax(axis=1), strict=True))
    )


def song_html(song: Song, encoder: str = CHAR_NGRAMS, language: str = "en") -> str:
    """Return the tags of a song as HTML, both groups side by side, with the cosine of both where both were asked."""
    t = DESCRIPTION_WORDS(language)
    ours, theirs = ({name: list(tags) for name, tags in song.tags.get(group, {}).items()} for group in GROUPS)
    shared = {name: tags for name, tags in theirs.items() if name in ours}
    found = compare({name: ours[name] for name in shared}, shared, "professional", encoder)
    names = list(dict.fromkeys((*DIMENSIONS["professional"], *DIMENSIONS["amateur"])))
    rows = "".join(_song_row(name, (ours, theirs), found, t, language) for name in names)
    theme = f"<p>{escape(t('theme'))}: {escape(song.theme)}</p>" if song.theme else ""
    head = f"<h3>{escape(song.title)} · {escape('、'.join(song.artist))}</h3>{theme}"
    return f'<div class="tg" id="song_view">{head}{rows}</div>'


def _song_row(name: str, sides: tuple[Tags, Tags], found: Compared, t: Say, language: str) -> str:
    group = next(group for group in GROUPS if name in DIMENSIONS[group])
    told = (
        f"{t('both')}: {_number(found.similarities[name].value, t)}" if name in found.similarities else t("one_group")
    )
    columns = "".join(
        f'<div class="tg-side"><div class="tg-small">{escape(t(each))}</div>{_chips(side[name])}</div>'
        for each, side in zip(GROUPS, sides, strict=True)
        if name in side
    )
    title = escape(title_of(group, name, language))
    return (
        f'<div class="tg-row" data-dimension="{escape(name)}"><div class="tg-name">{title}'
        f'<div class="tg-small">{escape(told)}</div></div>{columns}</div>'
    )


def _chips(tags: Sequence[str]) -> str:
    return f'<ul class="tg-chips">{"".join(f"<li>{escape(tag)}</li>" for tag in tags)}</ul>'


def tags_html(tags: Mapping[str, Tags], t: Say, language: str) -> str:
    """Return tags of both groups as HTML, dimension by dimension; dimensions without tags are left out."""
    if not any(found for named in tags.values() for found in named.values()):
        return f'<div class="tg"><p>{escape(t("probe_nothing"))}</p></div>'
    return f'<div class="tg" id="tags_view">{"".join(_tag_rows(tags, t, language))}</div>'


def _tag_rows(tags: Mapping[str, Tags], t: Say, language: str) -> Iterator[str]:
    for group, named in tags.items():
        yield f"<h3>{escape(t(group))}</h3>"
        for name, found in named.items():
            if found:
                title = f'<div class="tg-name">{escape(title_of(group, name, language))}</div>'
                yield f'<div class="tg-row">{title}<div class="tg-side">{_chips(found)}</div></div>'
