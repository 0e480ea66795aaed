"""One benchmark: the class `Task`, of which every task under `benchmark.tasks` is a subclass.

Attributes say what a task scores and what its tables call things; `Task.run` goes from settings to the files of a run;
all other methods say what is special of its results, and have defaults.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.contents import caveats
from music_evals.benchmark.results import build_results
from music_evals.benchmark.run import NO_EXTRA_OUTPUTS, ExtraOutputs, Outcome, Progress, Row, write_outcome
from music_evals.benchmark.score_table import HistogramFeature, ScoreTable
from music_evals.benchmark.scores import read_scores
from music_evals.benchmark.tables import markdown_report
from music_evals.errors import UnknownNameError
from music_evals.metrics.catalogue import Metric
from music_evals.numerics import PACKAGES, package_versions

__all__ = ["Task"]

Header = Mapping[str, Any]
"""The ``run`` row of the records: what the numbers depend on."""

Page = Callable[[dict[str, Any], ScoreTable], str]
"""Makes report.html of the results and the scores."""


class Task:
    """One benchmark; a subclass states what differs from the defaults.

    An instance is named in ``TASKS`` of the task's folder, ``{name: "module:INSTANCE"}``. `run` is all that a task must
    have; a task whose results `build_results` makes has `scales` too.

    Attributes
    ----------
    name
        The task in the header of its records.
    settings
        What `run` takes.
    title
        Of its report, before the name of the dataset.
    scales
        Main or auxiliary metric -> its scale, in the order of the tables.
    auxiliary
        Auxiliary metrics, which get tables of their own.
    packages
        Whose versions decide the numbers.
    controls
        Systems of our own that stand outside of all comparisons; the first has the distributions that divergences
        compare with.
    controls_explained, explained
        Sentences on the controls and on the scores, for below the tables.
    items, groups, remarks
        What is counted, as ``"pairs"`` of ``"groups"``, and what remarks are about.
    divergences, histogram_features
        Score of a whole set of items -> the recorded feature of items whose distribution it compares with the
        control's; or a feature of which an item has many values.
    on_request
        Scores that are shown only where they were asked for, and the records hold them.
    without_prediction
        Scores that a system has although it failed to predict; they are compared with nobody.
    ranked_by
        The score that ranks. Systems are then tested against the best baseline of each score, which is chosen on the
        validation records, and not two by two.
    view_titles
        View -> what it holds, in words; see `views`.
    across
        A score that is set against the others; a run that has it has a `plane`.
    extra_keys
        Keys of results.json that are made of other files than the records.
    """

    name: ClassVar[str]
    settings: ClassVar[type[Any]]
    title: ClassVar[str] = ""
    scales: ClassVar[Mapping[str, Metric]] = MappingProxyType({})
    auxiliary: ClassVar[Collection[str]] = ()
    packages: ClassVar[Sequence[str]] = PACKAGES
    controls: ClassVar[tuple[str, ...]] = ()
    controls_explained: ClassVar[str] = ""
    explained: ClassVar[str] = ""
    items: ClassVar[str] = "pairs"
    groups: ClassVar[str] = "groups"
    remarks: ClassVar[str] = "lengths that differ"
    divergences: ClassVar[Mapping[str, str]] = MappingProxyType({})
    histogram_features: ClassVar[Mapping[str, HistogramFeature]] = MappingProxyType({})
    on_request: ClassVar[Collection[str]] = ()
    without_prediction: ClassVar[Collection[str]] = ()
    ranked_by: ClassVar[str] = ""
    view_titles: ClassVar[Mapping[str, str]] = MappingProxyType({})
    across: ClassVar[str] = ""
    extra_keys: ClassVar[tuple[str, ...]] = ()

    def run(self, settings: Any, *, progress: Progress | None = None) -> Any:
        """Write the files of a run into its folder and return what it gives, mostly an `Outcome`.

        A run that was killed is resumed where it stood when it is started again with the same settings.
        """
        raise NotImplementedError(f"{type(self).__name__} has no run")

    def header(self, dataset: Mapping[str, Any], variant: str, metrics: Iterable[str], **more: Any) -> Row:
        """Return the header of the records of pairs: what their scores depend on, besides the pairs."""
        about = {"task": self.name, "dataset": dict(dataset), "variant": variant, "metrics": list(metrics)}
        return {**about, "companions": [], **more, "versions": package_versions(self.packages)}

    def write(
        self,
        rows: Iterable[Row],
        settings: Any,
        page: Page,
        *,
        validation: Iterable[Row] | None = None,
        extra: ExtraOutputs = NO_EXTRA_OUTPUTS,
    ) -> Outcome:
        """Write results.json, table.md and, by `page`, report.html, all made of the records."""
        scores = read_scores(rows, self)
        results = build_results(
            scores,
            self,
            None if validation is None else read_scores(validation, self),
            confidence=settings.confidence,
            n_resamples=settings.n_resamples,
            seed=settings.seed,
        )
        results |= extra.results
        return write_outcome(
            Path(settings.out),
            results,
            scores,
            table="\n\n".join(filter(None, [markdown_report(results), extra.markdown])),
            page=functools.partial(page, results, scores) if settings.report else None,
            others=extra.files,
            notes=[*self.caveats(results), *extra.notes],
        )

    # What is special of the records

    def check_scores(self, scores: ScoreTable) -> None:
        """Change scores that were read, e.g. the groups of pairs, or refuse them."""

    def shown_metrics(self, scores: ScoreTable) -> Sequence[str]:
        """Return the scores out of the header that results are made of."""
        return scores.metrics

    def missing_scores(self, header: Header) -> Mapping[str, float]:  # noqa: ARG002
        """Return what an item scores for which no prediction was given: the worst. At others it counts nowhere."""
        return {}

    def paired_groups(self, scores: ScoreTable, system: str) -> npt.NDArray[np.int64] | None:  # noqa: ARG002
        """Return the groups of both sides of a system's readable pairs, shape (n, 2); None where only one has any."""
        return None

    # What is special of the results

    def describe_run(self, header: Header) -> str:  # noqa: ARG002
        """Return what the scores were made with, in a few words."""
        return ""

    def describe_systems(self, scores: ScoreTable) -> Mapping[str, Mapping[str, Any]]:  # noqa: ARG002
        """Return what else is known of systems, by name; ``note`` stands beside the name."""
        return {}

    def facet_scores(self, scores: ScoreTable, *, confidence: float) -> Mapping[str, Any]:  # noqa: ARG002
        """Return one score a facet, as `tables.facet_blocks` shows them, with remarks."""
        return {}

    def plane(self, scores: ScoreTable, **resampling: Any) -> Mapping[str, Any]:  # noqa: ARG002
        """Return two scores of each system that are never made one, as `tables.plane_block` shows them."""
        return {}

    def views(self, scores: ScoreTable) -> Mapping[str, Collection[str]]:  # noqa: ARG002
        """Return the items of each part that gets tables of its own, `results.WHOLE` first; nothing for one table."""
        return {}

    def parts(self, scores: ScoreTable) -> Mapping[str, Collection[str]]:  # noqa: ARG002
        """Return the items of each part for which the score that ranks is computed, `results.WHOLE` first."""
        return {}

    def published_scores(self, header: Header) -> dict[str, Any]:  # noqa: ARG002
        """Return what others published: ``source``, ``table``, ``differences`` and, where printed, ``spread``.

        ``table`` is system -> metric -> value, ``differences`` what -> why, ``spread`` like ``table``.
        """
        return {"source": "", "table": {}, "differences": {}}

    def caveats(self, results: Mapping[str, Any]) -> Sequence[str]:
        """Return what a reader of the results should know before using them."""
        return caveats(results)

    def control_notes(self, systems: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:  # noqa: ARG002
        """Yield what a reader should know of the controls, from ``systems`` of the results."""
        return ()

    def remark_notes(self, remarks: Sequence[Mapping[str, Any]]) -> Iterable[str]:  # noqa: ARG002
        """Yield what a reader should know of the remarks, beside their number."""
        return ()

    def part_notes(self, parts: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:  # noqa: ARG002
        """Yield what a reader should know of ``parts`` of the results."""
        return ()

    # What follows from the attributes

    def is_divergence(self, name: str) -> bool:
        """Tell whether a score compares how something is distributed over a whole set of items."""
        return name in self.divergences or name in self.histogram_features

    def scale(self, name: str) -> Metric:
        """Return the scale of a main or auxiliary metric."""
        if name not in self.scales:
            kind = f"score of {self.name}"
            raise UnknownNameError(kind, name, self.scales)
        return self.scales[name]
