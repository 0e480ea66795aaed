"""How scored lyrics look: points by level, lines with their rhyme marks, where points were lost, as HTML and as rows.

All text of visitors is escaped. Marks have a sign and words beside their colour.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Final

from music_evals.annotations import LyricSection
from music_evals.lyrics.normalise import Normalised
from music_evals.lyrics.patterns import TextSection
from music_evals.lyrics.rhyme import RHYME_CLASSES
from music_evals.pipelines.lyrics import NO_CHINESE, LyricStructure

__all__ = [
    "MARKS",
    "VIEW_CSS",
    "changes_html",
    "escape",
    "line_rows",
    "lines_html",
    "losses",
    "losses_html",
    "mark_of",
    "pattern_counts",
    "score_html",
]

Say = Callable[..., str]

MARKS: Final[Mapping[str, str]] = {"kept": "✓", "missed": "✗", "extra": "+", "none": "·"}
"""What became of a rhyme -> its sign."""

_NOTES: Final = {NO_CHINESE: "no_chinese"}
"""Note of a score -> the words of the page for it."""

VIEW_CSS: Final = """
.ly {font-size: var(--text-md); color: var(--body-text-color); overflow-wrap: anywhere}
.ly h3 {margin: .8rem 0 .3rem; font-size: 1.05em}
.ly ul, .ly ol {list-style: none; margin: 0; padding: 0}
.ly-total {font-size: 1.6em; font-weight: 700; font-variant-numeric: tabular-nums}
.ly-level {margin: .7rem 0}
.ly-head {display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 1rem}
.ly-head b {font-variant-numeric: tabular-nums}
.ly-frame {height: 1rem; min-width: 3rem; margin: .2rem 0; border: 1px solid var(--body-text-color-subdued);
  border-radius: .2rem; background: var(--background-fill-secondary)}
.ly-fill {height: 100%; background: var(--color-accent)}
.ly-small {font-size: .85em; color: var(--body-text-color-subdued)}
.ly-line {display: grid; grid-template-columns: 2rem 1fr; gap: 0 .6rem; padding: .35rem .3rem;
  border-bottom: 1px solid var(--border-color-primary)}
.ly-mark {display: inline-block; width: 1.6rem; height: 1.6rem; line-height: 1.5rem; text-align: center;
  font-weight: 700; border: 2px solid currentColor; border-radius: .3rem}
.ly-kept .ly-mark {color: #0a7d45; border-style: solid}
.ly-missed .ly-mark {color: #c2410c; border-style: dashed}
.ly-extra .ly-mark {color: #1d6fd1; border-style: double; border-width: 4px; line-height: 1.2rem}
.ly-none .ly-mark {color: var(--body-text-color-subdued); border-color: transparent}
:root.dark .ly-kept .ly-mark, .dark .ly-kept .ly-mark {color: #4ade80}
:root.dark .ly-missed .ly-mark, .dark .ly-missed .ly-mark {color: #fb923c}
:root.dark .ly-extra .ly-mark, .dark .ly-extra .ly-mark {color: #7cb8ff}
.ly-words {font-size: 1.1em}
.ly-words mark {background: none; color: inherit; font-weight: 700; text-decoration: underline;
  text-decoration-thickness: .15em; text-underline-offset: .2em}
.ly-missed mark {text-decoration-style: dashed}
.ly-extra mark {text-decoration-style: double}
.ly code {font-family: var(--font-mono); white-space: pre-wrap}
.ly-legend {display: flex; flex-wrap: wrap; gap: .3rem 1rem; margin: .4rem 0}
.ly-legend li {display: flex; gap: .4rem; align-items: center}
.ly-good {border-left: .3rem solid #0a7d45; padding-left: .6rem}
.ly-bad {border-left: .3rem solid #c2410c; padding-left: .6rem}
.ly-bad code {display: block; white-space: pre; overflow-x: auto}
.ly pre {white-space: pre-wrap; font-family: var(--font-mono)}
"""


def escape(text: object) -> str:
    """Return text as HTML shows it; braces and dollars too, which Gradio's templates would read."""
    found = html.escape(str(text))
    return found.replace("{", "&#123;").replace("}", "&#125;").replace("$", "&#36;")


def score_html(score: LyricStructure, t: Say) -> str:
    """Return the notes, then the points of each level drawn against the most that can be had, and why."""
    most = max(level.maximum for level in score.levels)
    reached = t("points", points=f"{score.total:.2f}", most=110)
    parts = [f'<p><span class="ly-total">{escape(t("total"))}: {escape(reached)}</span></p>']
    for level in score.levels:
        name, points = t(f"level_{level.name}"), t("points", points=f"{level.points:.2f}", most=f"{level.maximum:g}")
        filled = 100 * level.points / level.maximum
        parts.append(
            f'<li class="ly-level" data-level="{level.name}"><div class="ly-head"><span>{escape(name)}</span>'
            f"<b>{escape(points)}</b></div>"
            f'<div class="ly-frame" role="img" aria-label="{escape(f"{name}: {points}")}" '
            f'style="width:{100 * level.maximum / most:.2f}%"><div class="ly-fill" style="width:{filled:.2f}%"></div>'
            f'</div><div class="ly-small">{escape(t("ratio", ratio=f"{level.ratio:.3f}"))}: '
            f"{escape(_reason(score, level.name, t))}</div></li>"
        )
    notes = "".join(f'<p class="ly-bad" role="status">{escape(note)}</p>' for note in _notes(score, t))
    body = f"{notes}{parts[0]}<ul>{''.join(parts[1:])}</ul>"
    return f'<div class="ly" id="score_view">{body}<p class="ly-small">{escape(t("direction"))}</p></div>'


def _notes(score: LyricStructure, t: Say) -> list[str]:
    return [t(_NOTES[note]) if note in _NOTES else note for note in score.notes]


def _reason(score: LyricStructure, level: str, t: Say) -> str:
    expected, found = (" ".join(codes) or "-" for codes in (score.expected_codes, score.found_codes))
    if level == "section":
        return t("why_section", expected=expected, found=found)
    if level == "phrase":
        return t("why_phrase", compared=score.compared_lines, matched=round(score.matched_lines))
    if level == "word":
        return t(f"why_word_{score.variant}")
    if level == "rhyme":
        return t("why_rhyme", expected=score.expected_rhymes, found=score.found_rhymes)
    if level == "reward":
        return t("why_reward", share=f"{score.rhyme_share:.3f}")
    return t("why_song")


def mark_of(line: Any) -> str:
    """Return what became of the rhyme of a line, a key of `MARKS`."""
    if line.rhyme_expected:
        return "kept" if line.rhyme_found else "missed"
    return "extra" if line.rhyme_found else "none"


def lines_html(score: LyricStructure, t: Say, find: Callable[[str], Hashable]) -> str:
    """Return all lines, section by section, each with what was expected and found, and its rhyme.

    Parameters
    ----------
    score
        What was scored.
    t
        Says words of the page.
    find
        Function from a line to its rhyme class.

    """
    parts = [_legend(t)]
    for section in score.sections:
        label = section.expected_label if section.found_label is None else section.found_label
        parts.append(
            f"<h3>({escape(label)}) <span class='ly-small'>{escape(t(f'status_{section.status}'))}</span></h3>"
        )
        parts.append(f"<ol>{''.join(_line(line, t, find) for line in section.lines)}</ol>")
    return f'<div class="ly" id="lines_view">{"".join(parts)}</div>'


def _legend(t: Say) -> str:
    items = "".join(
        f'<li class="ly-{name}"><span class="ly-mark" aria-hidden="true">{sign}</span>{escape(t(f"mark_{name}"))}</li>'
        for name, sign in MARKS.items()
    )
    return f'<ul class="ly-legend" aria-label="{escape(t("legend"))}">{items}</ul>'


def _line(line: Any, t: Say, find: Callable[[str], Hashable]) -> str:
    mark = mark_of(line)
    told = []
    if line.expected is not None:
        told.append(t("expected_line", pattern=line.expected or "-"))
    if line.found is not None:
        told.append(t("found_line", pattern=line.found or "-"))
    if line.status == "matched":
        told.append(t("characters", found=line.found_count, expected=line.expected_count))
    else:
        told.append(t(f"status_{line.status}"))
    told += _class_told(line.words, t, find)
    words = t("not_there") if line.words is None else line.words.strip()
    meaning = escape(t(f"mark_{mark}"))
    return (
        f'<li class="ly-line ly-{mark}" data-mark="{mark}" data-status="{line.status}">'
        f'<span class="ly-mark" role="img" aria-label="{meaning}" title="{meaning}">'
        f'{MARKS[mark]}</span><div><div class="ly-words">{_words(words, mark, known=line.words is not None)}</div>'
        f'<div class="ly-small">{" · ".join(map(escape, told))}</div></div></li>'
    )


def _words(words: str, mark: str, *, known: bool) -> str:
    """Return the words of a line, its last Chinese character underlined where its rhyme says something."""
    found = re.match(r"(.*)([\u4e00-\u9fff])(.*)", words, re.DOTALL)
    if not known or mark == "none" or found is None:
        return escape(words)
    return f"{escape(found[1])}<mark>{found[2]}</mark>{escape(found[3])}"


def _class_told(words: str | None, t: Say, find: Callable[[str], Hashable]) -> Iterator[str]:
    number = None if words is None else find(words)
    known = RHYME_CLASSES.get(number) if isinstance(number, int) else None
    if known is not None:
        yield t("rhyme_class", name=known.name, finals=" ".join(known.finals))


def losses(score: LyricStructure, t: Say) -> list[tuple[str, list[str]]]:
    """Return where points were lost: the levels, then each section that lost something, with its lines."""
    levels = [
        t(
            "level_lost",
            level=t(f"level_{each.name}"),
            lost=f"{each.maximum - each.points:.2f}",
            most=f"{each.maximum:g}",
        )
        for each in score.levels
        if each.maximum - each.points >= 0.005
    ]
    found = [(t("tab_score"), levels)] if levels else []
    for section in score.sections:
        if section.expected_index is None:
            place = (section.found_index or 0) + 1
            found.append((t("section_extra", place=place, label=section.found_label), []))
        elif section.found_index is None:
            place = section.expected_index + 1
            found.append((t("section_missing", place=place, label=section.expected_label), []))
        elif not all(line.lossless for line in section.lines):
            found.append((_section_told(section, t), list(_lines_told(section.lines, t))))
    return found


def _section_told(section: Any, t: Say) -> str:
    expected = sum(line.expected is not None for line in section.lines)
    found = sum(line.found is not None for line in section.lines)
    place, label = section.expected_index + 1, section.expected_label
    return t("section_lines", place=place, label=label, expected=expected, found=found)


def _lines_told(lines: Sequence[Any], t: Say) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if not line.lossless:
            place = f"{t('line_number', number=number)} {(line.words or '').strip()}".strip()
            yield t("line_lost", line=place, faults="; ".join(_faults(line, t)))


def _faults(line: Any, t: Say) -> Iterator[str]:
    if line.status == "missing":
        yield t("fault_missing", expected=line.expected_count)
        return
    if line.status == "extra":
        yield t("fault_extra")
        return
    if line.ratio != 1.0:
        key = "fault_foreign" if line.foreign_count else "fault_count"
        counts = {"expected": line.expected_count, "found": line.found_count, "foreign": line.foreign_count}
        yield t(key, ratio=f"{line.ratio:.3f}", **counts)
    if line.rhyme_expected != line.rhyme_found:
        yield t("fault_rhyme_missed" if line.rhyme_expected else "fault_rhyme_extra")


def losses_html(score: LyricStructure, t: Say) -> str:
    """Return `losses` as HTML, with the notes of the score."""
    found = losses(score, t)
    parts = [f"<h3>{escape(head)}</h3><ul>{_items(lines)}</ul>" for head, lines in found]
    if len(found) <= 1:  # levels alone: the official phrase ratio of perfect lyrics is a trifle below 1
        parts.append(f"<p>{escape(t('nothing_lost'))}</p>")
    if score.notes:
        parts.append(f"<h3>{escape(t('notes'))}</h3><ul>{_items(_notes(score, t))}</ul>")
    return f'<div class="ly" id="lost_view">{"".join(parts)}</div>'


def _items(lines: Sequence[str]) -> str:
    return "".join(f"<li>{escape(line)}</li>" for line in lines)


def changes_html(read: Normalised | None, t: Say) -> str:
    """Return what the normaliser changed; None where it was off."""
    if read is None:
        return f'<div class="ly" id="changes_view"><p>{escape(t("changes_off"))}</p></div>'
    told = [_change(change, t) for change in read.changes] or [t("changes_none")]
    text = f"<h3>{escape(t('normalised_text'))}</h3><pre>{escape(read.text)}</pre>"
    return f'<div class="ly" id="changes_view"><ul>{_items(told)}</ul>{text}</div>'


def _change(change: str, t: Say) -> str:
    """Say a change, ``"step: 'a' and 2 more became 'b'"``, in the words of the page."""
    step, _, what = change.partition(": ")
    name = t(f"step_{step}")
    blank = re.fullmatch(r"(\d+) lines? without words removed", what)
    if blank:
        return f"{name}: {t('changes_blank', n=blank[1])}"
    if what.endswith(" removed"):
        return f"{name}: {t('changes_removed', before=_more(what.removesuffix(' removed'), t))}"
    before, _, after = what.rpartition(" became ")
    return f"{name}: {t('changes_became', before=_more(before, t), after=_more(after, t))}"


def _more(quoted: str, t: Say) -> str:
    found = re.fullmatch(r"(.+) and (\d+) more", quoted, re.DOTALL)
    return f"{found[1]}{t('changes_more', n=found[2])}" if found else quoted


def line_rows(score: LyricStructure) -> list[dict[str, Any]]:
    """Return one row a line, for CSV and JSON: what was expected and found, and what became of its rhyme."""
    return [
        {
            "section": number,
            "expected_label": section.expected_label,
            "found_label": section.found_label,
            "line": at,
            "status": line.status,
            "words": None if line.words is None else line.words.strip(),
            "expected": line.expected,
            "found": line.found,
            "expected_count": line.expected_count,
            "found_count": line.found_count,
            "foreign_count": line.foreign_count,
            "ratio": None if math.isnan(line.ratio) else line.ratio,
            "rhyme": mark_of(line),
        }
        for number, section in enumerate(score.sections, start=1)
        for at, line in enumerate(section.lines, start=1)
    ]


def pattern_counts(sections: Sequence[LyricSection] | Sequence[TextSection]) -> dict[str, int]:
    """Return sections, lines, characters and rhyming lines of a pattern."""
    lines = [
        line
        for section in sections
        for line in (section.lines if isinstance(section, LyricSection) else section.body.splitlines())
        if line.strip()
    ]
    characters = sum(line.count("c") + line.count("R") for line in lines)
    rhymes = sum("R" in line for line in lines)
    return {"sections": len(sections), "lines": len(lines), "characters": characters, "rhymes": rhymes}
