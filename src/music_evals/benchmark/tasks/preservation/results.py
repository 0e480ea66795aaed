"""What edits preserved, summed up by `benchmark.results`: the task's words, and how its pairs are grouped.

By default the interval is clustered by the music of the originals: pairs whose originals hold the same music are one
group, as the records tell. The controls are the same music played back otherwise, and unrelated music.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from music_evals.benchmark.published import published_preservation
from music_evals.benchmark.results import ScoreTask
from music_evals.benchmark.scores import ScoreTable
from music_evals.benchmark.tasks.preservation.facets import describe_controls, facets, on_shared, sides
from music_evals.benchmark.tasks.preservation.pairs import CEILING, CONTROLS, UNRELATED
from music_evals.benchmark.tasks.preservation.reencoding import REENCODED_AUDIO, REENCODED_SCORE
from music_evals.metrics.catalogue import AUXILIARY, PRESERVATION_METRICS, RELEASE_SCORES

__all__ = ["PRESERVATION"]


def _on_controls(systems: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    if CEILING in systems and UNRELATED not in systems:
        yield "all originals are of one group: there is no row of unrelated music to compare with"
    if UNRELATED in systems and systems[UNRELATED]["n_pairs"] == 2:
        yield f"the two pairs of {UNRELATED} share originals, and do not say how far those of others may lie"
    yield from on_shared(systems.get(UNRELATED, {}))


def _group_by_music(score_table: ScoreTable) -> None:
    """Where pairs are grouped by the file of their original, take what it holds: other tags make no other music."""
    score_table.group_by(score_table.music_of(set(score_table.columns["group"].categories.to_pylist())))


PRESERVATION: Final = ScoreTask(
    name="preservation",
    title="What the edits preserved",
    scales={**PRESERVATION_METRICS, **RELEASE_SCORES, **AUXILIARY},
    auxiliary=AUXILIARY,
    controls=CONTROLS,
    controls_explained=(
        f"{CEILING}: each original against a copy of itself, {REENCODED_AUDIO} (scores: {REENCODED_SCORE}), which is "
        f"as near as extractors find the same music. {UNRELATED}: originals of different groups, chosen so that key "
        "and tempo differ where the corpus allows it, which is what chance gives."
    ),
    about=describe_controls,
    sides=sides,
    facets=facets,
    how=lambda header: f"variant {header['variant']}",
    published=lambda header: published_preservation(header["metrics"]),
    on_controls=_on_controls,
    finish=_group_by_music,
)
"""What this benchmark hands to the shared results, tables and pages."""
