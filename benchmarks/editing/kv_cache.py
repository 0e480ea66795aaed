"""How much faster RefinPaint draws tokens with a cache of keys and values than by working all rows out again.

Usage: python -m benchmarks.editing.kv_cache

Writes kv_cache.csv beside itself and fills its section of README.md. The network has random weights at the published
size, and all of its 512 tokens are drawn. The two ways take turns: a whole draw with the cache, then some steps over
all rows, at places spread over them. Each step over all rows costs the same, so that their mean times 512 is what a
whole draw costs; `--steps 512` does them all. Both must choose the same tokens, else nothing is written.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from benchmarks.gibbs.timing import receipt
from benchmarks.musib.tables import fill, write_csv

from music_evals.editing.refinpaint_networks import Inpainter, RefinPaintNetworks, resample
from music_evals.editing.refinpaint_tokens import BOS, VOCABULARY

HERE = Path(__file__).parent
GREEDY = 1e-9  # a nucleus of one token: both ways must choose the same one
FIGURES = ("turn", "rows", "cached_seconds", "steps", "step_seconds", "anew_seconds", "ratio")
COLUMNS = (*FIGURES, "device", "threads", "load_average", "torch")
HEADINGS = {
    "turn": "turn",
    "rows": "rows",
    "cached_seconds": "with the cache, seconds",
    "steps": "steps over all rows",
    "step_seconds": "seconds of one",
    "anew_seconds": "of all rows, seconds",
    "ratio": "times faster",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write table and page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=4, help="default: %(default)s")
    parser.add_argument("--steps", type=int, default=8, help="steps over all rows in each turn (default: %(default)s)")
    parser.add_argument("--width", type=int, default=512, help="of the network (default: %(default)s, as published)")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of kv_cache.csv and README.md")
    options = parser.parse_args(arguments)
    torch.manual_seed(0)
    inpainter = RefinPaintNetworks(width=options.width, n_feedback=1).inpainter
    with torch.no_grad():
        rows = [turn(inpainter, number, options.steps) for number in range(options.turns)]
    about = receipt("cpu")
    write_csv(options.out / "kv_cache.csv", COLUMNS, [{**row, **about} for row in rows])
    page = options.out / "README.md"
    if page.is_file():
        page.write_text(fill(page.read_text(encoding="utf-8"), sections(rows, about)), encoding="utf-8")


def turn(inpainter: Inpainter, number: int, steps: int) -> dict[str, Any]:
    """Return the figures of one whole draw with the cache, and of some steps without it."""
    generator = torch.Generator().manual_seed(number)
    n = inpainter.position.num_embeddings
    tokens = torch.randint(VOCABULARY, (n,), generator=generator)
    drawn = torch.ones(n, dtype=torch.bool)
    started = time.perf_counter()
    found = resample(inpainter, tokens, drawn, top_p=GREEDY, generator=generator, grammar=False)
    cached = time.perf_counter() - started
    encoded = inpainter.encode(tokens, drawn)  # once for the whole draw, as with the cache
    seconds = []
    for place in torch.linspace(0, n - 1, steps).long().tolist():
        started = time.perf_counter()
        chosen = step_anew(inpainter, found, encoded, place)
        seconds.append(time.perf_counter() - started)
        if chosen != int(found[place]):
            message = f"place {place}: {int(found[place])} with the cache and {chosen} without it"
            raise ValueError(message)
    step = statistics.mean(seconds)
    return dict(zip(FIGURES, (number, n, cached, steps, step, step * n, step * n / cached), strict=True))


def step_anew(inpainter: Inpainter, tokens: torch.Tensor, encoded: torch.Tensor, place: int) -> int:
    """Return the best token at a place, with every row of the decoder worked out."""
    before = torch.nn.functional.pad(tokens[:-1], (1, 0), value=BOS)
    rows = inpainter.extend(before, inpainter.cache(encoded))
    return int(inpainter.head(rows[place]).argmax())


def sections(rows: Sequence[Mapping[str, Any]], about: Mapping[str, str]) -> dict[str, str]:
    """Return the texts between the markers of the page."""
    lines = [
        list(HEADINGS.values()),
        ["---"] * len(HEADINGS),
        *([_shown(row[key]) for key in HEADINGS] for row in rows),
    ]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    median = statistics.median(row["ratio"] for row in rows)
    machine = ", ".join(f"{key.replace('_', ' ')}: {value}" for key, value in about.items())
    return {"kv_cache": f"{table}\n\nMedian: {median:.1f} times faster. {machine[0].upper()}{machine[1:]}."}


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}" if value < 1 else f"{value:.1f}"
    return str(value)


if __name__ == "__main__":
    main()
