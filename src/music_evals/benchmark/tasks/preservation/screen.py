"""What a user wants to see first of a run: the own scores, whole on one screen, and in a sentence what they say."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

from music_evals.benchmark.contents import caveats, compared_systems, heading, significant, undefined_notes
from music_evals.benchmark.formats import SIGNIFICANCE, align, counted, coverage_note, format_interval, format_value
from music_evals.benchmark.tables import (
    TEXT,
    blocks,
    details_text,
    facet_blocks,
    plane_block,
    summary,
    text_table,
    without_value,
)
from music_evals.benchmark.tasks.preservation.facets import on_shared
from music_evals.benchmark.tasks.preservation.pairs import CEILING, UNRELATED

WIDTH: Final = 80
"""Characters in a line of a terminal of the usual width."""

FULL, NONE = 0.995, 0.005
"""From where on a share rounds to 100 %, and to 0 %."""

WORDS: Final = {
    "circle_of_fifths_distance": "key", "major_minor_score": "chords", "chroma_dtw_similarity": "pitch classes",
    "delta_bpm": "tempo", "beat_f_measure": "beats", "information_gain": "pulse",
    "segment_ari": "sections", "boundary_f_measure": "section boundaries",
    "voicing_recall": "where the melody sounds", "motif_jaccard": "motifs in common", "motif_recall": "motifs kept",
}  # fmt: skip
"""What each of the eleven is a score of."""


def text_report(results: Mapping[str, Any], *, published: bool = False) -> str:
    """Return the own scores as text for a terminal; `published` adds below what table.md has besides.

    Scores of one system stand in a column, beside those of the controls, and its facets in a sentence, so that all of
    it fits on one screen; several systems stand in tables, one a facet.
    """
    systems, about = compared_systems(results), summary(results, TEXT.name)
    alone = len(systems) == 1
    if alone:
        parts = ["\n".join(["; ".join(about.splitlines()), _column(results, systems[0])])]
        parts += [text_table(plane_block(results))] if "plane" in results else []
    else:
        parts = [about, *map(text_table, [*blocks(results), *facet_blocks(results)])]
    by_facet = [facet_sentence(results, systems[0])] if alone and "facets" in results else []
    sentences = [*(by_facet or (preserved_sentence(results, name) for name in systems))]
    sentences += _remarks(results, published=published)
    # a number and its sign of percent stay together
    lines = (textwrap.fill(text.replace(" %", "\u00a0%"), WIDTH).replace("\u00a0%", " %") for text in sentences if text)
    text = "\n".join(lines)
    if alone and text:  # right below, so that all fits one screen
        parts[-1] = f"{parts[-1]}\n{text}"
    else:
        parts.append(text)
    return "\n\n".join(filter(None, [*parts, details_text(results, published=True) if published else ""]))


def _column(results: Mapping[str, Any], system: str) -> str:
    """Return all scores of one system below each other, by facet, beside those of the controls."""
    controls = {name: results["scores"][name] for name in (CEILING, UNRELATED) if name in results["scores"]}
    interval = f"{100 * results['intervals']['confidence']:g} % interval"
    lines = [["", "", "score", interval, "n", *(name.split()[0] for name in controls)]]
    facets = [""]
    for name, scale in sorted(results["scales"].items(), key=lambda row: row[1]["companion"]):
        cell = results["scores"][system][name]
        n = str(cell["n"]) if cell["n_defined"] == cell["n"] else f"{cell['n_defined']}/{cell['n']}"
        theirs = [format_value(held[name]["value"]) if name in held else "" for held in controls.values()]
        facets.append("Companions" if scale["companion"] else scale["facet"].capitalize())
        label = facets[-1] if facets[-1] != facets[-2] else ""
        lines.append([label, heading(results, name), format_value(cell["value"]), format_interval(cell), n, *theirs])
    return align(lines, n_left=2, gap=" ")


def facet_sentence(results: Mapping[str, Any], system: str) -> str:
    """Say in one sentence where the facets of a system lie between the controls."""
    others = results["facets"].get("others")
    parts = []
    for facet, cell in (
        *results["facets"]["scores"][system].items(), *([("and", others["scores"][system])] if others else ())
    ):  # fmt: skip
        extra = filter(None, [format_interval(cell), without_value(cell)])
        parts.append(" ".join([facet, format_value(cell["value"]), *(f"({text})" for text in extra)]))
    if others:
        parts[-1] += f" over all but {' and '.join(others['intended'])}, which the edits were meant to change"
    name = TEXT.name(system)
    return f"By facet, from unrelated music (0) to the same music (1), {name} has {', '.join(parts)}."


def preserved_sentence(results: Mapping[str, Any], system: str) -> str:
    """Say in one sentence what a system preserved, by where its scores stand between those of the two controls.

    0 % is what unrelated music scores, 100 % the same music. Where all originals are of one group there is no unrelated
    music: then it is said which scores are as good as those of the same music. Empty without that control too, and
    where none of the scores has a word in `WORDS`.
    """
    controls = [name for name in (CEILING, UNRELATED) if name in results["scores"]]
    if CEILING not in controls:
        return ""
    groups: dict[str, list[str]] = {}
    for name in (name for name in results["scales"] if name in WORDS):
        values = [results["scores"][column][name]["value"] for column in (system, *controls)]
        numbers = [value for value in values if isinstance(value, int | float)]
        if len(numbers) < len(values) or len(set(values[1:])) < len(controls):
            where, words = "not comparable: ", WORDS[name]
        elif len(controls) == 2:
            own, same, unrelated = numbers
            share, words = (own - unrelated) / (same - unrelated), WORDS[name]
            where = "in full: " if share >= FULL else "in part: " if share >= NONE else "not: "
            words = f"{words} {100 * share:.0f} %" if where == "in part: " else words
        else:
            lower = results["scales"][name]["direction"] == "lower"
            # in the digits that are shown
            own, same = (round(-number if lower else number, 3) for number in numbers)
            where, words = ("as near as the same music in " if own >= same else "less near in "), WORDS[name]
        groups.setdefault(where, []).append(words)
    if not groups:
        return ""
    verb, order, end = (
        ("preserved", ("in full: ", "in part: ", "not: "), " (0 % is unrelated music)")
        if len(controls) == 2
        else ("is", ("as near as the same music in ", "less near in "), "")
    )
    parts = [f"{where}{', '.join(groups[where])}" for where in (*order, "not comparable: ") if where in groups]
    return f"{TEXT.name(system)} {verb} {'; '.join(parts)}{end}."


def _remarks(results: Mapping[str, Any], *, published: bool) -> Iterator[str]:
    """Yield what must be known at once, a line each, and where the rest is."""
    every = [cell for name in compared_systems(results) for cell in results["scores"][name].values()]
    numbers = [(cell.get("n_clusters", 0), cell["n_groups"]) for cell in every if cell["low"] is not None]
    compared = {test["metric"] for test in results.get("comparisons", ())}
    if few := coverage_note(numbers, "groups", divergences=False, compared=compared):
        yield f"{few[0].upper()}{few[1:]}."
    if any(results["systems"][name]["n_groups"] == 1 for name in compared_systems(results)):
        yield "One group says nothing of a second: no interval."
    yield from (f"{text}." for text in undefined_notes(results))  # which begin with the name of a system
    about = results["systems"].get(UNRELATED, {})
    if any(on_shared(about)):
        yield f"Unrelated music is partly alike: {about['note'].strip('[]')}."
    if failed := len(results["failures"]):
        yield f"{counted(failed, 'failures')}, which table.md lists."
    if results.get("comparisons"):
        share = f"{len(significant(results))} of {counted(len(results['comparisons']), 'differences')} between systems"
        yield f"{share} significant at {SIGNIFICANCE} (Holm); {TEXT.marks['best']} is best."
    if not published:
        counts = f"{counted(len(caveats(results)), 'notes')}, {counted(len(results['notes']), 'remarks')}"
        yield f"In table.md, or with `published`: {counts}, results of others."
