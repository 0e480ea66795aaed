"""Which cells of a piece sound, said by models and by rules that copy: the objective table of style transfer.

Usage: python -m benchmarks.cell_prediction.run [--model FOLDER ...] [--every N] [--write]

Each model is judged on the test split of its own style, beside the rules; `--split validation` for choices. Rules need
no model, and are judged on the authors' own split of the chorales too. With `--write` the rows of what was run replace
those of results.csv, the tables of README.md are made of all rows there, and the card in the folder of each model has
its scores, in its head and beside the rules.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.musib.tables import fill, write_csv
from huggingface_hub import EvalResult
from huggingface_hub.repocard_data import eval_results_to_model_index

from music_evals.annotations import PianoRoll
from music_evals.benchmark.formats import markdown_rows
from music_evals.benchmark.inputs import model_type_of
from music_evals.datasets.manifest import load_split
from music_evals.errors import UndefinedMetricWarning
from music_evals.files import write_atomically
from music_evals.hub.model_index import write_index
from music_evals.metrics.catalogue import CELL_SCORES
from music_evals.models.baselines import make_roll_baseline
from music_evals.pipelines.style_transfer.cell_prediction import HIDDEN, evaluate_predictor
from music_evals.protocols import ROLL_BASELINES, STYLE_TRANSFERS, load_plugin
from music_evals.repositories import MODELS, find_repository
from music_evals.symbolic.encodings.piano_rolls import piano_roll
from music_evals.symbolic.piece_rows import score_of_row

HERE = Path(__file__).parent
COLUMNS = (
    "corpus", "split", "every", "system", "parameters", "hidden", "score", "value", "low", "high", "pieces", "groups",
)  # fmt: skip
SHOWN: Final = {
    "piano_roll_error_rate": ("error, %", 100, 3),
    "change_error_rate": ("error where music changes, %", 100, 2),
    "cell_f1": ("F1", 1, 3),
    "cell_nll": ("nats a cell", 1, 5),
}
"""Score -> heading, factor and digits of the pages."""

LIKELIHOOD: Final = "cell_nll"


class Corpus(NamedTuple):
    """A data set that models of one style, or rules alone, are judged on."""

    dataset: str
    config: str
    title: str


CORPORA: Final = {
    "bach": Corpus("jsb_chorales", "style", "Chorales of Bach, split by tune"),
    "bach_official": Corpus("jsb_chorales", "style_official", "Chorales of Bach, the authors' split"),
    "swing": Corpus("swing_synth", "swing_synth", "Synthetic swing"),
}
"""Key -> data set; a model is judged on the one whose key is its style."""


class Pieces(NamedTuple):
    """Pieces of a split, and the family of each."""

    rolls: list[PianoRoll]
    families: list[str]


def main(arguments: Sequence[str] | None = None) -> None:
    """Judge, print, and write where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", default=[], help="folder of a model; may be given many times")
    parser.add_argument("--rules", action="store_true", help="judge the rules anew too")
    parser.add_argument("--corpus", choices=sorted(CORPORA), action="append", help="default: all")
    parser.add_argument("--split", choices=("validation", "test"), default="test")
    parser.add_argument("--every", type=int, default=1, help="judge every so many pieces (default: %(default)s)")
    parser.add_argument("--hidden", type=int, nargs="+", default=list(HIDDEN), help="default: %(default)s")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of results.csv and README.md")
    options = parser.parse_args(arguments)
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # silence predicts nothing: it has no precision
        for key in options.corpus or CORPORA:
            rows += list(_judged(key, options))
    for line in _tables(rows):
        print(line)
    if options.write:
        every = _write(rows, options.out)
        judged = {row["corpus"] for row in rows}
        for folder, model in ((folder, _load(folder)) for folder in options.model):
            if model.style in judged:
                _fill_card(Path(folder), model, every)


def _judged(key: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the rows of a corpus: of its models, and of the rules."""
    models = {folder: _load(folder) for folder in options.model}
    own = {folder: model for folder, model in models.items() if model.style == key}
    if not own and not options.rules:
        return
    corpus = CORPORA[key]
    pieces = read_pieces(corpus, options.split, options.every)
    about = {"corpus": key, "split": options.split, "every": options.every, "pieces": len(pieces.rolls)}
    for model in own.values():
        print(f"{model.name} on {len(pieces.rolls)} pieces of {key}", file=sys.stderr)
        found = evaluate_predictor(pieces.rolls, model, groups=pieces.families, hidden=options.hidden)
        size = sum(parameter.numel() for parameter in model.parameters())
        yield from _rows(found, options.hidden, {**about, "system": model.config.model_type, "parameters": size})
    if options.rules:
        train = read_pieces(corpus, "train", options.every).rolls
        for name in ROLL_BASELINES:
            rule = make_roll_baseline(name)
            found = evaluate_predictor(pieces.rolls, rule, groups=pieces.families, hidden=options.hidden)
            for hidden in options.hidden:
                # its likelihood is that of the probabilities which its answers have in training
                fitted = rule.fitted(train, hidden=hidden)
                sure = evaluate_predictor(pieces.rolls, fitted, groups=pieces.families, hidden=(hidden,))
                found |= {name: value for name, value in sure.items() if name.startswith(LIKELIHOOD)}
            yield from _rows(found, options.hidden, {**about, "system": name})


def read_pieces(corpus: Corpus, split: str, every: int) -> Pieces:
    """Return every so many pieces of a split as rolls."""
    rows = load_split(corpus.dataset, corpus.config, split).to_list()[::every]
    rolls = [piano_roll(score_of_row(row), steps_per_quarter=row["ticks_per_quarter"]) for row in rows]
    return Pieces(rolls, [row["family"] for row in rows])


def _load(folder: str) -> Any:
    """Load a model of a folder."""
    place = Path(find_repository(folder, MODELS, "model", STYLE_TRANSFERS)[0])
    plugin = load_plugin(STYLE_TRANSFERS, model_type_of(place, STYLE_TRANSFERS), "model type")
    return plugin.from_pretrained(str(place)).eval()


def _rows(found: Mapping[str, Any], hidden: Sequence[int], about: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield one row a score and number of hidden steps."""
    for steps in hidden:
        suffix = f"_hidden_{steps}" if steps else ""
        for score in CELL_SCORES:
            low, high = found[f"{score}{suffix}_ci"]
            yield {
                **dict.fromkeys(COLUMNS, ""),
                **about,
                "hidden": steps,
                "score": score,
                "value": found[score + suffix],
                "low": low,
                "high": high,
                "groups": found[f"{score}{suffix}_n_clusters"],
            }


def _write(rows: Sequence[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """Put the rows into results.csv in place of older ones of the same systems; make the page, return all."""
    path = folder / "results.csv"
    old = _stored(path) if path.exists() else []
    new = {(row["corpus"], row["system"]) for row in rows}
    kept = [row for row in old if (row["corpus"], row["system"]) not in new]
    systems = [*STYLE_TRANSFERS, *ROLL_BASELINES]
    scores = [*CELL_SCORES]

    def place(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return row["corpus"], systems.index(row["system"]), int(row["hidden"]), scores.index(row["score"])

    every = sorted([*kept, *rows], key=place)
    write_csv(path, COLUMNS, every)
    page = folder / "README.md"
    stored = _stored(path)
    text = fill(page.read_text(encoding="utf-8"), {"table": "\n".join(_tables(stored)).strip()})
    write_atomically(page, text.encode())
    return stored


def _fill_card(folder: Path, model: Any, rows: Sequence[dict[str, Any]]) -> None:
    """Put the scores of a model on its card: those that hide nothing into its head, all, beside the rules, into it."""
    card, corpus, kind = folder / "README.md", CORPORA[model.style], model.config.model_type
    own = [row for row in rows if row["corpus"] == model.style and row["system"] in {kind, *ROLL_BASELINES}]
    scored = [row for row in own if row["system"] == kind and row["hidden"] == "0"]
    head = [
        EvalResult(
            task_type="style-transfer",
            task_name="Cells of piano rolls",
            dataset_type=corpus.dataset,
            dataset_name=corpus.dataset.replace("_", " "),
            dataset_config=corpus.config,
            dataset_split=row["split"],
            metric_type=row["score"],
            metric_name=CELL_SCORES[row["score"]].heading,
            metric_value=float(row["value"]),
            metric_args={"confidence": 0.95, **_bounds(row)},
        )
        for row in scored
        if not math.isnan(float(row["value"]))
    ]
    text = fill(card.read_text(encoding="utf-8"), {"results": "\n".join(_tables(own)).strip()})
    write_atomically(card, write_index(text, eval_results_to_model_index(model.name.replace(":", "-"), head)).encode())


def _bounds(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the interval of a row, nothing where it has none."""
    return {name: float(row[name]) for name in ("low", "high") if not math.isnan(float(row[name]))}


def _stored(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _tables(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of one table a corpus."""
    for key, corpus in CORPORA.items():
        own = [row for row in rows if row["corpus"] == key]
        if not own:
            continue
        runs = sorted({(row["split"], str(row["every"]), str(row["pieces"])) for row in own})
        which = "; ".join(
            f"{pieces} pieces of {split}" + (f", every {every}th" if every != "1" else "")
            for split, every, pieces in runs
        )
        yield from ("", f"### {corpus.title}", "", f"`{corpus.dataset}`, `{corpus.config}`: {which}.", "")
        headings = ["system", "hidden", *(heading for heading, *_ in SHOWN.values())]
        cells = {(row["system"], int(row["hidden"]), row["score"]): row for row in own}
        body = [
            [f"`{system}`", str(hidden), *(_shown(score, cells[system, hidden, score]) for score in SHOWN)]
            for system, hidden in dict.fromkeys((row["system"], int(row["hidden"])) for row in own)
        ]
        yield markdown_rows([headings, ["---"] * len(headings), *body])


def _shown(score: str, row: Mapping[str, Any]) -> str:
    """Return a value with its interval."""
    _, factor, digits = SHOWN[score]
    value, low, high = (float(row[name]) * factor for name in ("value", "low", "high"))
    interval = "" if math.isnan(low) else f" ({low:.{digits}f} to {high:.{digits}f})"
    return f"{value:.{digits}f}{interval}"


if __name__ == "__main__":
    main()
