"""True lyrics, controls and three tiny writers under all variants of the lyric score, in one table.

    python -m benchmarks.lyric_writers.run            # some minutes on one core

Songs are the demo songs of `caimd`, which are our own: the first half is trained on, the second half is judged. The
writers are made on the spot, with one token a character and some ten thousand weights: ``random``, as it was drawn;
``tuned``, the same tuned in full on the training songs; ``tuned, LoRA``, the same with LoRA. The recipe is that of
``models/lyric_writer``, the writing and scoring that of ``write-lyrics``. Writes results.csv
and the tables of README.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.machines import processor

from music_evals.benchmark.tasks.songs import lyrics
from music_evals.benchmark.tasks.songs.lyric_writing import LYRIC_WRITING, Settings
from music_evals.datasets.caimd.demo import demo_rows
from music_evals.models.training import train_from_file
from music_evals.repositories import MODELS, folders

HERE = Path(__file__).resolve().parent
VARIANTS: Final = ("official", "corrected", "paper")
WRITERS: Final = ("random", "tuned", "tuned, LoRA")
LENGTH: Final = 300
"""Tokens that a writer may write, one a character; half of the twelve judged songs are longer."""


class Size(NamedTuple):
    """How large the writers are, and how long they are tuned."""

    hidden: int = 48
    epochs: int = 8
    songs: int | None = None  # of each half; None takes all


class Row(NamedTuple):
    """A row of results.csv."""

    system: str
    variant: str
    n: int
    value: float
    low: float | None
    high: float | None
    diversity: float | None


def main() -> None:
    """Make, tune, write, score, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=Size().epochs, help="of tuning, at most (default: %(default)s)")
    parser.add_argument("--hidden", type=int, default=Size().hidden, help="size of the writers (default: %(default)s)")
    parser.add_argument("--songs", type=int, help="of each half (default: all)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows, losses = measure(Path(folder), Size(options.hidden, options.epochs, options.songs))
    write(rows, losses)
    print(table(rows))


def measure(folder: Path, size: Size) -> tuple[list[Row], dict[str, tuple[float, float]]]:
    """Return the rows, and system -> loss of the songs held out for validation, before and after tuning."""
    songs = demo_rows()
    half = len(songs) // 2
    halves = {"train": songs[:half][: size.songs], "judged": songs[half:][: size.songs]}
    paths = {name: _write_rows(folder / f"{name}.jsonl", rows) for name, rows in halves.items()}
    base = make_writer(folder / "random", halves["train"], size.hidden)
    losses = {
        name: _tune(base, paths, folder / kind, kind, size.epochs)
        for name, kind in zip(WRITERS[1:], ("full", "lora"), strict=True)
    }
    places = dict(zip(WRITERS, (base, folder / "full/model", folder / "lora/model"), strict=True))
    models = [f"{name}={place}" for name, place in places.items()]
    written = Settings(
        out=folder / "written",
        dataset=str(paths["judged"]),
        models=models,
        temperature=0.8,
        max_tokens=LENGTH,
        batch_size=16,
        n_resamples=100,
        report=False,
    )
    found = _rows(LYRIC_WRITING.run(written).results, VARIANTS[0])
    for variant in VARIANTS[1:]:  # what was written is scored again
        settings = lyrics.Settings(
            out=folder / variant,
            dataset=str(paths["judged"]),
            predictions=[folder / "written" / "texts.jsonl"],
            variant=variant,
            numbered=False,
            n_resamples=100,
            report=False,
        )
        found += _rows(lyrics.LYRICS.run(settings).results, variant)
    return found, losses


def make_writer(folder: Path, songs: Sequence[Mapping[str, Any]], hidden: int) -> Path:
    """Save a random language model that has a token for each character of the songs and of the prompt."""
    import torch
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    from music_evals.lyrics.prompts import default_example, lyric_prompt

    texts = [json.dumps(list(songs), ensure_ascii=False), lyric_prompt("甲", "(verse)\ncR"), *default_example(), "\n-"]
    vocabulary = {
        token: number
        for number, token in enumerate(["<pad>", "<s>", "</s>", "<unk>", *sorted(set().union(*map(set, texts)))])
    }
    special = dict(zip(["pad_token", "bos_token", "eos_token", "unk_token"], vocabulary, strict=False))
    core = Tokenizer(models.WordLevel(vocabulary, unk_token=special["unk_token"]))
    core.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    core.decoder = decoders.Fuse()
    PreTrainedTokenizerFast(tokenizer_object=core, **special).save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = LlamaConfig(
            vocab_size=len(vocabulary),
            hidden_size=hidden,
            intermediate_size=2 * hidden,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=4096,
            tie_word_embeddings=True,
            bos_token_id=1,
            eos_token_id=2,
            pad_token_id=0,
        )
        model = LlamaForCausalLM(config)
    model.generation_config = GenerationConfig(bos_token_id=1, eos_token_id=2, pad_token_id=0)
    model.save_pretrained(folder)
    return folder


def _tune(base: Path, paths: Mapping[str, Path], out: Path, kind: str, epochs: int) -> tuple[float, float]:
    settings = {
        "model.base": base,
        "model.tuning": kind,
        "data.dataset": paths["train"],
        "data.judged": paths["judged"],
        "data.validation": 0.2,
        "training.epochs": epochs,
        "training.batch_size": 2,
        "training.learning_rate": 0.005,
        "training.patience": epochs,
    }
    changes = [f"{name}={value}" for name, value in settings.items()]
    result: Any = train_from_file(folders(MODELS)["lyric_writer"] / "train.yaml", changes=changes, out=out)
    return result.base_loss, result.validation_loss


def _write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def _rows(results: Mapping[str, Any], variant: str) -> list[Row]:
    found = []
    for system, scores in results["scores"].items():
        cell, diversity = scores["lyric_structure"], scores["lyric_diversity"]["value"]
        found.append(Row(system, variant, cell["n_defined"], cell["value"], cell["low"], cell["high"], diversity))
    return found


def write(rows: Sequence[Row], losses: Mapping[str, tuple[float, float]]) -> None:
    """Write results.csv, and the tables of README.md."""
    with (HERE / "results.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(Row._fields)
        out.writerows([_rounded(value) for value in row] for row in rows)
    page = HERE / "README.md"
    text = _replaced(page.read_text(encoding="utf-8"), "table", table(rows))
    page.write_text(_replaced(text, "losses", loss_table(losses)), encoding="utf-8")


def table(rows: Sequence[Row]) -> str:
    """Return a row a system and a column a variant, in Markdown."""
    known = {(row.system, row.variant): row for row in rows}
    n = max(row.n for row in rows)
    head = [f"lyrics, {n} demo songs", *(f"`{variant}`" for variant in VARIANTS), "`lyric_diversity`"]
    lines = [f"| {' | '.join(head)} |", f"| --- |{' ---: |' * (len(head) - 1)}"]
    for system in dict.fromkeys(row.system for row in rows):
        cells = [_cell(known[system, variant]) for variant in VARIANTS]
        diversity = known[system, VARIANTS[0]].diversity
        lines.append(f"| {system} | {' | '.join(cells)} | {'n/a' if diversity is None else f'{diversity:.2f}'} |")
    return "\n".join(lines)


def loss_table(losses: Mapping[str, tuple[float, float]]) -> str:
    """Return the loss of the held-out songs before and after tuning, in Markdown."""
    lines = ["| writer | before, nats a token | after |", "| --- | ---: | ---: |"]
    lines += [f"| {name} | {before:.2f} | {after:.2f} |" for name, (before, after) in losses.items()]
    return "\n".join([*lines, "", f"Measured on {processor()}."])


def _cell(row: Row) -> str:
    ends = "" if row.low is None or row.high is None else f" ({row.low:.1f}, {row.high:.1f})"
    return f"{row.value:.1f}{ends}"


def _rounded(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


def _replaced(text: str, name: str, content: str) -> str:
    before, start, rest = text.partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"\n<!-- /{name} -->")
    if not (start and end):
        raise ValueError(f"the page has no place {name!r}")
    return f"{before}{start}{content}{end}{after}"


if __name__ == "__main__":
    main()
