"""The benchmark of style transfer from end to end: settings in, result files out.

A run is of one of two kinds. ``"cells"``: models and the trivial rows predict the cells of the pieces of a corpus, each
from the true others. ``"transfers"``: models carry pieces with a melody over to their style; judged are the melody,
the classifier's opinion and, of all outputs of a system together, their divergences from held-out pieces of the target
style (key ``fidelity`` of the results). The outputs are in the records, and beside them as MIDI files.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final

import numpy as np

from music_evals.annotations import LOWEST_PITCH, Arrangement, PianoRoll
from music_evals.benchmark.formats import plain
from music_evals.benchmark.inputs import derive_rng, hash_of, load_split, resolve_revision, split_names
from music_evals.benchmark.report import score_page
from music_evals.benchmark.rows import Pair, PairJob, PairSet, score_or_reason
from music_evals.benchmark.run import NO_EXTRA_OUTPUTS, RECORDS, ExtraOutputs, Outcome, Progress, record, remove_results
from music_evals.benchmark.run import Settings as RunSettings
from music_evals.benchmark.task import Task
from music_evals.benchmark.tasks.style_transfer.systems import System, load_model, rules, trivial_transfers
from music_evals.errors import (
    InvalidInputError,
    MusicEvalsError,
    NoDataError,
    UndefinedMetricWarning,
    UnknownNameError,
    located,
)
from music_evals.files import write_atomically
from music_evals.metrics.catalogue import CELL_SCORES, HIDDEN_CELL_SCORES, MELODY_SCORES, STYLE_SCORES, metric_of
from music_evals.metrics.cell_prediction import cell_scores, count_cells
from music_evals.metrics.style_classifier import StyleClassifier
from music_evals.options import option
from music_evals.pipelines.style_transfer.cell_prediction import HIDDEN, name_hidden
from music_evals.pipelines.style_transfer.fidelity import (
    MELODY_AUXILIARY,
    MELODY_METRICS,
    STRETCH_BARS,
    evaluate_melody,
    evaluate_style,
    load_style_classifier,
    towards_style,
)
from music_evals.symbolic.encodings.piano_rolls import arrange, arrangement_score, piano_roll, roll_notes
from music_evals.symbolic.midi import write_midi
from music_evals.symbolic.piece_rows import score_of_row

CELLS, TRANSFERS = "cells", "transfers"
KINDS = (CELLS, TRANSFERS)
"""What a run judges: the cells that models predict, or the pieces that they carry over."""

TRANSFER_SCORES: Final = (
    *MELODY_SCORES, *MELODY_METRICS, *MELODY_AUXILIARY, *(n for n, m in STYLE_SCORES.items() if m.kind == "item")
)  # fmt: skip
"""What is recorded of an output; divergences are of all outputs of a system together."""

CORPORA: Final[Mapping[str, str]] = MappingProxyType({"bach": "jsb_chorales/style", "swing": "swing_synth/swing_synth"})
"""Style -> ``dataset/config`` of its pieces."""

OUTPUTS: Final = "outputs"
"""Folder of the MIDI files of a run of transfers: ``<system>/<item>.mid``."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(RunSettings):
    """Data, systems and options of a run; those of the verb ``style-transfer`` by their keywords.

    Parameters
    ----------
    dataset
        Holds whole pieces (`symbolic.piece_rows`); those of transfers name their melody.
    kind
        ``"cells"`` or ``"transfers"``; see the module.
    n_seeds
        Of transfers: seeds 0..n-1, each an item of its own; all of a piece are one cluster.
    styles
        Of transfers: target styles of the trivial rows; by default those of the models, or all of `CORPORA`.
    classifier
        Of transfers: name or file, see `pipelines.style_transfer.fidelity.load_style_classifier`.
    corpus_split
        Of transfers: split of the target corpus that divergences are taken from.

    Raises
    ------
    InvalidInputError
        Settings that contradict each other, or a number out of range.
    UnknownNameError
        Another kind, or a style without a corpus.
    """

    kind: str = option(
        CELLS,
        "cells: which cells of the pieces sound, each told the others (default); transfers: pieces with a melody are "
        "carried over, and the outputs scored",
        group="data",
    )
    models: Sequence[str | os.PathLike[str]] = option(
        (),
        "a name such as full_sequence, a folder or a Hub id[@revision]; of a benchmark it may be given many times",
        flag="--model",
        group="who",
    )
    hidden: Sequence[int] = option(HIDDEN, "steps hidden around a cell: 0, 8, 32", group="data", nargs="+")
    n_seeds: int = option(1, "transfers of a piece (default: %(default)s)", flag="--seeds", group="data")
    styles: Sequence[str] = option(
        (),
        "such as bach: the model bmst that has learnt it; of a benchmark, that of the trivial rows",
        flag="--style",
        group="who",
    )
    classifier: str | os.PathLike[str] = "bach_swing"
    corpus_split: str = "test"
    seed: int = option(
        0,
        "of the first sample, those after it have the next; of a benchmark, of its tests (default: %(default)s)",
        metavar="SEED",
    )

    GROUPS: ClassVar = {
        "who": "the model or models",
        "how": "how",
        "data": "a benchmark, in place of files",
        "run": "a benchmark, in place of files",
        "output": "where it goes",
    }
    TEXTS: ClassVar = {
        "dataset": "a name (see list), a folder or a Hub id of whole pieces",
        "limit": "the first N pieces only",
    }

    BOUNDS: ClassVar = {**RunSettings.BOUNDS, "n_seeds": (1, 1000)}

    def __post_init__(self) -> None:
        if self.dataset is None:
            raise InvalidInputError("give `dataset`: a corpus whose cells are predicted, or pieces to carry over")
        super().__post_init__()
        if self.kind not in KINDS:
            raise UnknownNameError("kind", self.kind, KINDS)
        hidden = list(self.hidden)
        if not hidden or len(set(hidden)) < len(hidden) or not set(hidden) <= set(HIDDEN):
            raise InvalidInputError(f"`hidden` must be different numbers out of {HIDDEN}, got {hidden}")
        for style in self.styles:
            if style not in CORPORA:
                raise UnknownNameError("style", style, CORPORA)


class StyleTransfer(Task):
    """Cells that models predict of a corpus, or pieces that they carry over to its style."""

    name = "style-transfer"
    settings = Settings
    title = "Style transfer"
    scales: ClassVar = {
        **CELL_SCORES,
        **HIDDEN_CELL_SCORES,
        **{name: dataclasses.replace(metric_of(name), facet="melody kept") for name in TRANSFER_SCORES},
        **{name: STYLE_SCORES[name] for name in TRANSFER_SCORES if name in STYLE_SCORES},
    }
    items, groups = "pieces", "tunes"
    extra_keys = ("fidelity",)
    explained = (
        "Means over pieces, each of which counts alike. Of cells, silence and the rules that copy a neighbour are what "
        "a model has to beat: on a grid of 32nd notes a rule of two lines has almost no error unless neighbours are "
        "hidden. Of transfers, `unchanged` is the input and `melody_alone` the input without accompaniment."
    )

    def run(self, settings: Settings, *, progress: Progress | None = None) -> Outcome:
        """Judge models and trivial rows, and write records, results.json, table.md, report.html and MIDI files."""
        models = [load_model(name) for name in settings.models]
        revision = resolve_revision(str(settings.dataset), settings.revision)
        settings = dataclasses.replace(settings, revision=revision)
        pieces, config = _pieces(settings)
        out = Path(settings.out)
        if settings.overwrite:
            remove_results(out)
        scorer: _CellScorer | _TransferScorer
        if settings.kind == CELLS:
            where = (str(settings.dataset), settings.config)  # likelihoods of rules are fitted to a train split
            has_train = "train" in split_names(*where, revision=revision)
            train = load_split(*where, "train", revision=revision) if has_train else ()
            systems = [*models, *rules([piano_roll(score_of_row(row)) for row in train], settings.hidden)]
            by_name = _by_name(systems)
            scorer = _CellScorer(by_name, tuple(settings.hidden))
            names = tuple(name_hidden(name, steps) for steps in settings.hidden for name in CELL_SCORES)
            options: dict[str, Any] = {"hidden": list(settings.hidden)}
        else:
            styles = settings.styles or list(dict.fromkeys(model.style for model in models)) or list(CORPORA)
            systems = [*models, *trivial_transfers(styles)]
            by_name = _by_name(systems)
            classifier = load_style_classifier(settings.classifier)
            scorer, names = _TransferScorer(by_name, classifier, STRETCH_BARS), TRANSFER_SCORES
            options = {
                "n_seeds": settings.n_seeds,
                "classifier": hash_of(repr(classifier.to_dict()).encode()),
                "corpus_split": settings.corpus_split,
            }
        pairs = _pairs(settings, systems, pieces)
        dataset = {"id": settings.dataset, "config": config, "split": settings.split, "revision": revision}
        dataset["fingerprint"] = hash_of("".join(piece.content for piece in pieces).encode())
        headers = {
            system.name: {"content_hash": system.content_hash, "style": system.style, **system.details}
            for system in systems
        }
        about = {"kind": settings.kind, "limit": settings.limit, **options}
        header = self.header(dataset, "corrected", names, options=about, judged=headers)
        judged = PairSet(dataset, tuple(by_name), tuple(pairs))
        job = PairJob(header, judged, (), names, "corrected", scorer)
        rows = record(job, out / RECORDS, settings, progress=progress)
        extra = NO_EXTRA_OUTPUTS
        if settings.kind == TRANSFERS:
            extra = _fidelity(settings, by_name, _outputs(rows, pairs))
        page = functools.partial(score_page, facts={"kind": settings.kind, **options})
        return self.write(rows, settings, page, extra=extra)

    def describe_run(self, header: Mapping[str, Any]) -> str:
        """Say what was predicted or carried over."""
        options = header["options"]
        if options["kind"] == CELLS:
            return f"cells of whole pieces, {', '.join(map(str, options['hidden']))} steps hidden on either side"
        return f"melodies carried over, {options['n_seeds']} seeds"


STYLE_TRANSFER: Final = StyleTransfer()
"""The task."""


def _by_name(systems: Sequence[System]) -> dict[str, System]:
    names = [system.name for system in systems]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInputError(f"systems need different names, got {', '.join(twice)} more than once; leave one out")
    return dict(zip(names, systems, strict=True))


def _pieces(settings: Settings) -> tuple[list[_Piece], str | None]:
    """Return the pieces of the dataset, and the config that they are of."""
    rows = load_split(str(settings.dataset), settings.config, settings.split, revision=settings.revision)
    pieces = [_piece(row, settings) for row in list(rows)[: settings.limit]]
    if not pieces:
        raise NoDataError(f"{settings.dataset} holds no pieces in {settings.split}; nothing can be judged")
    return pieces, rows.info.config_name


def _piece(row: Mapping[str, Any], settings: Settings) -> _Piece:
    name = str(row.get("name") or "")
    value: PianoRoll | Arrangement
    try:
        score = score_of_row(row)
        if settings.kind == TRANSFERS:
            if not row.get("melody"):
                raise InvalidInputError("the piece names no voice as its melody; choose pieces that do")
            value = arrange(score, row["melody"])
            content = value.melody.onsets.tobytes() + value.merged.cells.tobytes()
        else:
            value = piano_roll(score)
            content = value.onsets.tobytes() + value.cells.tobytes()
    except MusicEvalsError as error:
        raise located(error, f"{settings.dataset}, {name}") from error
    return _Piece(name, hash_of(content), str(row.get("family") or name), value)


def _pairs(settings: Settings, systems: Sequence[System], pieces: Sequence[_Piece]) -> list[Pair]:
    """Return every system on every piece; the first seed has the name of the piece, others are called runs."""
    pairs = []
    for system in systems:
        for seed in range(settings.n_seeds if settings.kind == TRANSFERS else 1):
            who, run = _Who(system.name, system.content_hash, seed), f", run {seed + 1}" if seed else ""
            pairs += [Pair(f"{piece.name}{run}", system.name, piece.group, "roll", piece, who) for piece in pieces]
    return pairs


def _outputs(rows: Iterable[Mapping[str, Any]], pairs: Sequence[Pair]) -> dict[tuple[str, str], Arrangement]:
    """Return what was made of each item, by system and item, from the records; what failed is not there."""
    known = {(pair.system, pair.item): pair for pair in pairs}
    outputs: dict[tuple[str, str], Arrangement] = {}
    for row in rows:
        pair = known.get((row.get("system", ""), row.get("item", ""))) if row["kind"] == "explanation" else None
        if pair is not None and row["content"] == [pair.reference.content, pair.estimate.content]:
            assert isinstance(pair.reference.value, Arrangement)
            outputs[pair.system, pair.item] = _output_of(row["output"], pair.reference.value)
    return outputs


def _fidelity(
    settings: Settings, systems: Mapping[str, System], outputs: Mapping[tuple[str, str], Arrangement]
) -> ExtraOutputs:
    """Compare all outputs of each system with held-out pieces of its style, and write them as MIDI files."""
    names = [name for name, metric in STYLE_SCORES.items() if metric.kind == "set"]
    fidelity: dict[str, Any] = {}
    notes = []
    corpora: dict[str, tuple[list[PianoRoll], list[str]]] = {}
    for system in systems.values():
        made = {item: output for (name, item), output in outputs.items() if name == system.name}
        for item, output in made.items():
            path = Path(settings.out) / OUTPUTS / _file_name(system.name) / f"{_file_name(item)}.mid"
            write_atomically(path, write_midi(arrangement_score(output)), parents=True)
        if system.style not in CORPORA:
            notes.append(f"{system.name}: no corpus of the style {system.style!r}, so no divergences")
            continue
        if not made:
            continue
        if system.style not in corpora:
            dataset, _, config = CORPORA[system.style].partition("/")
            rows = list(load_split(dataset, config, settings.corpus_split))
            corpora[system.style] = [piano_roll(score_of_row(row)) for row in rows], [row["family"] for row in rows]
        rolls, families = corpora[system.style]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)  # n_defined says so
            scores = evaluate_style(
                [output.merged for output in made.values()],
                rolls,
                groups=np.array([item.split(", run ")[0] for item in made]),
                corpus_groups=np.array(families),
                confidence=settings.confidence,
                n_resamples=settings.n_resamples,
                seed=settings.seed,
            )
        fidelity[system.name] = {
            name: {key: scores[f"{name}{key and '_' + key}"] for key in ("", "ci", "null", "n", "n_defined")}
            for name in names
        }
        for cells in fidelity[system.name].values():
            cells["value"] = cells.pop("")
    return ExtraOutputs({"fidelity": plain(fidelity)}, _table(fidelity, names), notes)


def _table(fidelity: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the divergences as a table, each with its noise floor."""
    intro = "All outputs of a system together, in nats, lower is nearer; the noise floor in brackets."
    titles = " | ".join(STYLE_SCORES[name].title for name in names)
    lines = ["## Divergence from the target corpus", "", intro, "", f"| System | {titles} |"]
    lines.append(f"|---|{'---|' * len(names)}")
    for system, scores in fidelity.items():
        scored = (scores[name] for name in names)
        cells = (f"{cell['value']:.4f} ({cell['null']:.4f})" if cell["n_defined"] else "n/a" for cell in scored)
        lines.append(f"| {system} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.-]+", "_", text).strip("._") or "_"


TOWARDS = ("style_probability", "style_accuracy")


@dataclasses.dataclass(frozen=True, eq=False)
class _Piece:
    """A piece: the reference of a pair."""

    name: str
    content: str  # hash of its notes
    group: str  # family of its tune
    value: PianoRoll | Arrangement


@dataclasses.dataclass(frozen=True)
class _Who:
    """The estimate of a pair: what a system makes of it."""

    name: str
    content: str
    seed: int


@dataclasses.dataclass(frozen=True)
class _CellScorer:
    """Judges the cells that a system predicts of a piece."""

    systems: Mapping[str, System]
    hidden: Sequence[int]

    def __call__(self, pair: Pair) -> dict[str, Any]:
        """Return the scores for each number of hidden steps."""
        roll = pair.reference.value
        assert isinstance(roll, PianoRoll)
        system = self.systems[pair.system]
        scores: dict[str, Any] = {}
        for hidden in self.hidden:
            counted = cell_scores(count_cells(roll.cells, system.plugin.cell_probabilities(roll, hidden=hidden)))
            if hidden in system.fitted:
                likely = system.likely(hidden).cell_probabilities(roll, hidden=hidden)
                counted["cell_nll"] = cell_scores(count_cells(roll.cells, likely))["cell_nll"]
            for name, value in counted.items():
                reason = "a wrong cell was held for impossible" if math.isinf(value) else "nothing to count"
                scores[name_hidden(name, hidden)] = score_or_reason(math.nan if math.isinf(value) else value, reason)
        return {"scores": scores, "notes": []}


@dataclasses.dataclass(frozen=True)
class _TransferScorer:
    """Transfers a piece with a system, and scores the melody of the output and its style by the classifier."""

    systems: Mapping[str, System]
    classifier: StyleClassifier | None
    bars: int

    def __call__(self, pair: Pair) -> dict[str, Any]:
        """Return the scores, and the notes of the output as explanation."""
        given = pair.reference.value
        assert isinstance(given, Arrangement)
        system = self.systems[pair.system]
        seed, style = pair.estimate.seed, system.style
        output = system.plugin.transfer(given, rng=derive_rng(seed, pair.system, pair.reference.name))
        if not isinstance(output, Arrangement) or not output.melody.same_grid(given.melody):
            raise InvalidInputError(f"{pair.system} returned no arrangement on the grid of the input")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)  # said of each score below
            [item] = evaluate_melody([given], [output], per_item=True)["per_item"]
        scores = {name: score_or_reason(value, "the melody has nothing to keep") for name, value in item.items()}
        towards, reason = (math.nan, math.nan), f"no classifier knows the style {style!r}"
        if self.classifier is not None and style in self.classifier.styles:
            towards, reason = towards_style(output.merged, self.classifier, style, self.bars), "nothing sounds"
        scores |= {name: score_or_reason(value, reason) for name, value in zip(TOWARDS, towards, strict=True)}
        notes = [  # onset, duration, pitch and voice (0 the melody), in steps
            [int(note["onset_tick"]), int(note["duration_tick"]), int(note["pitch"]), voice]
            for voice, roll in enumerate((output.melody, output.accompaniment))
            for note in roll_notes(roll)
        ]
        return {"scores": scores, "notes": [], "explanation": {"seed": seed, "output": notes}}


def _output_of(notes: Sequence[Sequence[int]], given: Arrangement) -> Arrangement:
    """Return an output from its record, on the grid of its input."""
    rolls = []
    for voice in (0, 1):
        cells, onsets, offsets = (np.zeros_like(given.melody.cells) for _ in range(3))
        for onset, duration, pitch, of in notes:
            if of == voice:
                cells[onset : onset + duration, pitch - LOWEST_PITCH] = True
                onsets[onset, pitch - LOWEST_PITCH] = True
                offsets[onset + duration : onset + duration + 1, pitch - LOWEST_PITCH] = True
        rolls.append(given.melody.with_notes(cells, onsets, offsets & ~cells))
    return Arrangement(*rolls)
