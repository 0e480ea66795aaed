"""How scored lyrics look: points by level, lines with their rhyme marks, where points were lost, as HTML and as rows.

Marks have a sign and words beside their colour.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Final

from music_evals.annotations import LyricSection
from music_evals.lyrics.normalise import Normalised
from music_evals.lyrics.rhyme import RHYME_CLASSES
from music_evals.pipelines.lyrics import NO_CHINESE, NO_CHINESE_EMPTY, NO_CHINESE_FORM, LyricStructure
from music_evals.ui.assets import html

Say = Callable[..., str]

MARKS: Final[Mapping[str, str]] = {"kept": "✓", "missed": "✗", "extra": "+", "none": "·"}
"""What became of a rhyme -> its sign."""

_NOTES: Final = {NO_CHINESE: "no_chinese", NO_CHINESE_FORM: "no_chinese_form", NO_CHINESE_EMPTY: "no_chinese_empty"}
"""Note of a score -> the words of the page for it."""

_BRACES: Final = str.maketrans({"{": "&#123;", "}": "&#125;", "$": "&#36;"})


def inert(template: str, **values: Any) -> str:
    """Fill in a template; braces and dollars, which Gradio's own templates would read, become entities."""
    return str(html(template, **values).translate(_BRACES))


def score_html(score: LyricStructure, t: Say) -> str:
    """Return the notes, then the points of each level drawn against the most that can be had, and why."""
    most = max(level.maximum for level in score.levels)
    return inert("lyric_score.html", score=score, most=most, reasons=_reasons(score, t), notes=_notes(score, t), t=t)


def _notes(score: LyricStructure, t: Say) -> list[str]:
    """Return the notes of a score in the words of the page."""
    return [t(_NOTES[note]) if note in _NOTES else note for note in score.notes]


def _reasons(score: LyricStructure, t: Say) -> dict[str, str]:
    """Return level -> what its ratio says."""
    if score.variant == "corrected":
        needed, requested = score.edits.needed, score.edits.expected
        levels = ("song", "section", "phrase", "word", "rhyme")
        numbers = zip(levels, (sum(needed), *needed), (sum(requested), *requested), strict=True)
        return {level: t("why_edits", needed=n, asked=wanted, what=t(f"edits_{level}")) for level, n, wanted in numbers}
    expected, actual = (" ".join(codes) or "-" for codes in (score.expected_codes, score.found_codes))
    return {
        "song": t("why_song"),
        "section": t("why_section", expected=expected, found=actual),
        "phrase": t("why_phrase", compared=score.compared_lines, matched=round(score.matched_lines)),
        "word": t(f"why_word_{score.variant}"),
        "rhyme": t("why_rhyme", expected=score.expected_rhymes, found=score.found_rhymes),
        "reward": t("why_reward", share=f"{score.rhyme_share:.3f}"),
    }


def mark_of(line: Any) -> str:
    """Return what became of the rhyme of a line, a key of `MARKS`."""
    if line.rhyme_expected:
        return "kept" if line.rhyme_found else "missed"
    return "extra" if line.rhyme_found else "none"


def lines_html(score: LyricStructure, t: Say, find: Callable[[str], Hashable]) -> str:
    """Return all lines, section by section, each with what was expected and found, and its rhyme class by `find`."""
    facts, words = functools.partial(_facts, t=t, find=find), functools.partial(_words, t=t)
    return inert("lyric_lines.html", score=score, marks=MARKS, mark_of=mark_of, words_of=words, facts_of=facts, t=t)


def _facts(line: Any, t: Say, find: Callable[[str], Hashable]) -> Iterator[str]:
    """Yield what stands below the words of a line."""
    if line.expected is not None:
        yield t("expected_line", pattern=line.expected or "-")
    if line.actual is not None:
        yield t("found_line", pattern=line.actual or "-")
    if line.status == "matched":
        yield t("characters", found=line.found_count, expected=line.expected_count)
    else:
        yield t(f"status_{line.status}")
    number = None if line.words is None else find(line.words)
    known = RHYME_CLASSES.get(number) if isinstance(number, int) else None
    if known is not None:
        yield t("rhyme_class", name=known.name, finals=" ".join(known.finals))


def _words(line: Any, t: Say) -> tuple[str, str, str]:
    """Split the words of a line at its last Chinese character, which is marked where its rhyme says something."""
    if line.words is None:
        return t("not_there"), "", ""
    match = re.match(r"(.*)([\u4e00-\u9fff])(.*)", line.words.strip(), re.DOTALL)
    if match is None or mark_of(line) == "none":
        return line.words.strip(), "", ""
    return match[1], match[2], match[3]


def losses(score: LyricStructure, t: Say) -> list[tuple[str, list[str]]]:
    """Return where points were lost: the levels, then each section that lost something, with its lines."""
    levels = [
        t("level_lost", level=t(f"level_{each.name}"), lost=f"{lost:.2f}", most=f"{each.maximum:g}")
        for each in score.levels
        if (lost := each.maximum - each.points) >= 0.005
    ]
    groups = [(t("tab_score"), levels)] if levels else []
    for section in score.sections:
        if section.expected_index is None:
            place = (section.found_index or 0) + 1
            groups.append((t("section_extra", place=place, label=section.found_label), []))
        elif section.found_index is None:
            place = section.expected_index + 1
            groups.append((t("section_missing", place=place, label=section.expected_label), []))
        elif not all(line.lossless for line in section.lines):
            expected = sum(line.expected is not None for line in section.lines)
            actual = sum(line.actual is not None for line in section.lines)
            number, title = section.expected_index + 1, section.expected_label
            groups.append(
                (
                    t("section_lines", place=number, label=title, expected=expected, found=actual),
                    list(_lost_lines(section.lines, t)),
                )
            )
    return groups


def _lost_lines(lines: Sequence[Any], t: Say) -> Iterator[str]:
    """Yield each line that lost something, with its faults."""
    for number, line in enumerate(lines, start=1):
        if not line.lossless:
            place = f"{t('line_number', number=number)} {(line.words or '').strip()}".strip()
            yield t("line_lost", line=place, faults="; ".join(_faults(line, t)))


def _faults(line: Any, t: Say) -> Iterator[str]:
    """Yield what is wrong with a line."""
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
    return inert("lyric_lost.html", lost=losses(score, t), notes=_notes(score, t), t=t)


def changes_html(read: Normalised | None, t: Say) -> str:
    """Return what the normaliser changed; None where it was off."""
    changes = [] if read is None else [_change(change, t) for change in read.changes]
    return inert("lyric_changes.html", read=read, changes=changes, t=t)


def _change(change: str, t: Say) -> str:
    """Say a change, ``"step: 'a' and 2 more became 'b'"``, in the words of the page."""
    step, _, detail = change.partition(": ")
    name = t(f"step_{step}")
    blank = re.fullmatch(r"(\d+) lines? without words removed", detail)
    if blank:
        return f"{name}: {t('changes_blank', n=blank[1])}"
    if detail.endswith(" removed"):
        return f"{name}: {t('changes_removed', before=_more(detail.removesuffix(' removed'), t))}"
    before, _, after = detail.rpartition(" became ")
    return f"{name}: {t('changes_became', before=_more(before, t), after=_more(after, t))}"


def _more(quoted: str, t: Say) -> str:
    """Say ``"'a' and 2 more"`` in the words of the page."""
    match = re.fullmatch(r"(.+) and (\d+) more", quoted, re.DOTALL)
    return f"{match[1]}{t('changes_more', n=match[2])}" if match else quoted


def line_rows(score: LyricStructure) -> list[dict[str, Any]]:
    """Return one row a line, for CSV and JSON: what was expected and found, and what became of its rhyme."""
    same = ("expected_count", "found_count", "foreign_count")
    return [
        {
            "section": number,
            "expected_label": section.expected_label,
            "found_label": section.found_label,
            "line": at,
            "status": line.status,
            "words": None if line.words is None else line.words.strip(),
            "expected": line.expected,
            "found": line.actual,
            **{name: getattr(line, name) for name in same},
            "ratio": None if math.isnan(line.ratio) else line.ratio,
            "rhyme": mark_of(line),
        }
        for number, section in enumerate(score.sections, start=1)
        for at, line in enumerate(section.lines, start=1)
    ]


def pattern_counts(sections: Sequence[LyricSection]) -> dict[str, int]:
    """Return sections, lines, characters and rhyming lines of a pattern."""
    lines = [line for section in sections for line in section.lines if line.strip()]
    return {
        "sections": len(sections),
        "lines": len(lines),
        "characters": sum(line.count("c") + line.count("R") for line in lines),
        "rhymes": sum("R" in line for line in lines),
    }
