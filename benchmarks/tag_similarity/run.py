"""Time of the tag similarity with each tag encoded once, beside a loop that encodes both tags of every pair.

    python benchmarks/tag_similarity/run.py            # some minutes; writes results.csv

Both use the same sentence-transformers model, built on the spot: characters, two layers of BERT, random weights. A real
encoder takes longer for each call, so the ratio of calls stands beside the ratio of times.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from music_evals.annotations import SCORED
from music_evals.lyrics.embeddings import load_encoder
from music_evals.pipelines.descriptions import description_of_row, tag_similarity_table

HERE = Path(__file__).resolve().parent
DEMO = HERE.parents[1] / "datasets_scripts" / "caimd" / "data" / "demo"
DEV = HERE.parents[2] / "shared" / "data" / "muchin" / "dev.jsonl"  # third-party songs, never in the repository
N_LOOP = 24  # songs that the loop gets; its time goes with the number of pairs of tags
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}


def build_model(folder: Path, letters: Sequence[str]) -> Path:
    """Write a sentence-transformers model with random weights that pools by the first token."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules
    from transformers import BertConfig, BertModel, BertTokenizer

    torch.manual_seed(0)
    torch.set_num_threads(1)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters]), encoding="utf-8")
    BertModel(BertConfig(vocab_size=5 + len(letters), max_position_embeddings=64, **SIZES)).save_pretrained(
        folder / "bert"
    )
    BertTokenizer(str(vocabulary)).save_pretrained(folder / "bert")
    reader = modules.Transformer(str(folder / "bert"), max_seq_length=64)
    pooling = modules.Pooling(SIZES["hidden_size"], pooling_mode="cls")
    model = SentenceTransformer(modules=[reader, pooling, modules.Normalize()], device="cpu")
    model.save(str(folder / "model"))
    return folder / "model"


def songs_of(data: str) -> list[dict[str, Any]]:
    """Return descriptions of the demo songs, or of the development songs of MuChin."""
    if data == "demo":
        import pyarrow.parquet as pq

        rows = [row for path in sorted(DEMO.glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    else:
        rows = [json.loads(line) for line in DEV.read_text(encoding="utf-8").splitlines()]
    return [description_of_row(row) for row in rows]


def loop(encoder: Any, generated: Sequence[Any], references: Sequence[Any], group: str) -> tuple[np.ndarray, int]:
    """Score as the released code does: two calls of the encoder for each pair of tags; also count the calls."""
    table, calls = [], 0
    for one, other in zip(generated, references, strict=True):
        row = []
        for name in SCORED[group]:
            cosines = []
            for tag in one[group][name]:
                for wanted in other[group][name]:
                    cosines.append((encoder.encode([tag]) @ encoder.encode([wanted]).T)[0][0])
                    calls += 2
            row.append((np.mean(np.array(cosines)), np.std(np.array(cosines))))
        table.append(row)
    return np.array(table), calls


def measure(data: str, model: Path) -> list[tuple[str, str, str, str]]:
    """Return rows of results.csv for one set of songs."""
    songs = songs_of(data)
    generated = [*songs[1:], *songs[:1]]  # each song is described as the next one
    encoder = load_encoder(str(model), device="cpu")
    encoder.encode(["warm up"])
    walls, few = [], slice(0, N_LOOP)
    start = time.perf_counter()
    looped = [loop(encoder, generated[few], songs[few], group) for group in SCORED]
    walls.append(time.perf_counter() - start)
    ours = []
    for chosen in (few, slice(None)):
        start = time.perf_counter()
        ours = [tag_similarity_table(songs[chosen], generated[chosen], group, encoder=encoder) for group in SCORED]
        walls.append(time.perf_counter() - start)
    worst = max(
        float(np.abs(table - found[few]).max()) for (table, _), found in zip(looped, ours, strict=True)
    )  # fmt: skip
    calls = sum(count for _, count in looped)
    all_calls = sum(
        2 * len(one[group][name]) * len(other[group][name])
        for one, other in zip(generated, songs, strict=True)
        for group, names in SCORED.items()
        for name in names
    )
    unique = sum(
        len({tag for song in songs for name in SCORED[group] for tag in song[group][name]}) for group in SCORED
    )
    scaled = walls[0] * all_calls / calls
    values = [
        ("songs", str(len(songs)), "songs"),
        ("list_pairs", str(20 * len(songs)), "pairs of lists"),
        ("loop_songs", str(len(songs[few])), "songs"),
        ("loop_calls", str(calls), "calls"),
        ("loop_wall", f"{walls[0]:.2f}", "s"),
        ("ours_same_songs_wall", f"{walls[1]:.3f}", "s"),
        ("ratio_same_songs", f"{walls[0] / walls[1]:.0f}", "times"),
        ("loop_all_songs_calls", str(all_calls), "calls"),
        ("loop_all_songs_wall_scaled", f"{scaled:.0f}", "s"),
        ("unique_tags", str(unique), "tags"),
        ("ours_all_songs_wall", f"{walls[2]:.2f}", "s"),
        ("ratio_all_songs_scaled", f"{scaled / walls[2]:.0f}", "times"),
        ("ratio_calls", f"{all_calls / unique:.0f}", "times"),
        ("largest_difference", f"{worst:.1e}", ""),
    ]
    return [(data, *value) for value in values]


def receipt() -> list[tuple[str, str, str, str]]:
    """Return hardware and versions."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    packages = ("numpy", "torch", "transformers", "sentence-transformers", "music_evals")
    return [
        ("", "cpu", models[0] if models else platform.machine(), ""),
        ("", "threads", "1", ""),
        ("", "load_average", f"{os.getloadavg()[0]:.1f}", "processes"),
        ("", "python", platform.python_version(), ""),
        *(("", package, version(package), "") for package in packages),
    ]


def main() -> None:
    """Measure on the demo songs and, where they are, on the development songs of MuChin; write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / "results.csv", help="where the table goes")
    arguments = parser.parse_args()
    sets = ["demo", *(["muchin_dev"] if DEV.is_file() else [])]
    tags = "".join(
        tag for data in sets for song in songs_of(data) for own in song.values() for t in own.values() for tag in t
    )
    with tempfile.TemporaryDirectory() as folder:
        model = build_model(Path(folder), sorted({letter for letter in tags.lower() if not letter.isspace()}))
        rows = [row for data in sets for row in measure(data, model)]
    rows += receipt()
    with arguments.out.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([("data", "quantity", "value", "unit"), *rows])
    for data, quantity, value, unit in rows:
        print(f"{data:12} {quantity:28} {value:>12} {unit}")


if __name__ == "__main__":
    main()
