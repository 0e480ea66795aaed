"""The scores of this repository on JSB Chorales: honest, and under the published conditions.

Usage: python benchmarks/jsb_chorales/run.py

Judges our networks and all baselines as `make run` does, and Anticipation-RNN and all baselines under ``--protocol
official --decoding teacher_forced``; the other networks under published conditions are in `benchmarks/musib`.
Writes results.csv and parts.csv beside itself, and the tables between the markers ``<!-- scores:start -->`` and
``<!-- scores:end -->`` of its README.md. parts.csv has note F1 on
parts of the windows: near copies of training, repeats in the context, each voice.
"""

from __future__ import annotations

import argparse
import csv
import io
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import datasets

from music_evals.benchmark.contents import order
from music_evals.benchmark.formats import markdown_rows
from music_evals.benchmark.results import WHOLE
from music_evals.benchmark.tasks.inpainting.report import compact_table
from music_evals.benchmark.tasks.inpainting.task import HEADINGS, INPAINTING, NEAR, SUBSETS, Settings
from music_evals.files import write_atomically

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
JUDGED = ("anticipation_rnn", "inpaintnet", "sketchnet", "vli", "infill_transformer", "infill_transformer:sample")
MODELS = {
    "honest": [str(ROOT / "models" / name) for name in JUDGED],
    "official": [str(ROOT / "models" / "anticipation_rnn")],
}
DATASET = ROOT / "datasets_scripts" / "jsb_chorales"
START, END = "<!-- scores:start -->", "<!-- scores:end -->"
COLUMNS = ("protocol", "subset", "system", "metric", "value", "low", "high", "null", "n", "n_defined", "p_holm")
PART_COLUMNS = ("part", "windows", "system", "value", "low", "high")
PROTOCOLS: dict[str, dict[str, Any]] = {
    "honest": {"config": "musib"},
    "official": {"protocol": "official", "decoding": "teacher_forced"},
}


def judge(protocol: str, out: Path, models: Iterable[str] | None = None) -> dict[str, Any]:
    """Run one of `PROTOCOLS` into a folder and return its results."""
    models = MODELS[protocol] if models is None else tuple(models)
    options = {key: value for key, value in PROTOCOLS[protocol].items() if models or key != "decoding"}
    settings = Settings(out, dataset=str(DATASET), models=tuple(models), report=False, **options)
    return INPAINTING.run(settings).results


def rows_of(protocol: str, results: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Yield one row for each system and metric, as results.csv holds it: six decimals, empty where undefined."""
    for subset, table in results["tables"].items():
        for system, cells in table["scores"].items():
            for metric, cell in cells.items():
                numbers = {key: cell.get(key) for key in ("value", "low", "high", "null")}
                numbers["p_holm"] = (cell.get("test") or {}).get("p_holm")
                yield {
                    "protocol": protocol,
                    "subset": subset,
                    "system": system,
                    "metric": metric,
                    "n": str(cell["n"]),
                    "n_defined": str(cell["n_defined"]),
                    **{key: "" if number is None else f"{number:.6f}" for key, number in numbers.items()},
                }


def honest_text(results: Mapping[str, Any]) -> str:
    """Return the tables of all and of unseen windows, and how to read them."""
    parts = []
    for subset, table in results["tables"].items():
        parts.append(f"**{SUBSETS[subset].capitalize()}**: {table['n_items']} windows of {table['n_songs']} songs.")
        parts.append(compact_table(results, table))
    parts.append(
        "`+` better, `-` worse than the best baseline of that metric (`=`), which is chosen on validation; paired test "
        "by song, Holm-corrected p < 0.05. In brackets the 95 % interval, clustered by song, and the floor: the "
        "divergence that noise alone has at this number of songs, on average. ≈: compared with the reference's own. "
        "Ranked by note F1, which monotone output raises: read it beside the next two columns. The controls, in "
        "italics, stand outside: `best_lag` chooses by the true middle which stretch of the context to copy."
    )
    return "\n\n".join(parts)


def part_rows(results: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Yield one row for each part of the windows and system, as parts.csv holds it."""
    for name, part in results["parts"].items():
        for system, cell in part["scores"].items():
            numbers = {key: "" if cell[key] is None else f"{cell[key]:.6f}" for key in ("value", "low", "high")}
            yield {"part": name, "windows": str(part["n_items"]), "system": system, **numbers}


def near_text(results: Mapping[str, Any]) -> str:
    """Return in a sentence how many windows are near copies of training."""
    near, whole = (results["parts"][name]["n_items"] for name in (NEAR, WHOLE))
    return (
        f"{near} of the {whole} windows ({near / whole:.0%}) are near copies of a training passage, up to "
        "transposition; `benchmarks/jsb_chorales` has note F1 with and without them, and by voice."
    )


def parts_text(results: Mapping[str, Any]) -> str:
    """Return note F1 on each part of the windows: systems in rows, parts in columns."""
    parts = results["parts"]
    lines = [
        ["system", *(f"{name} ({part['n_items']})" for name, part in parts.items())],
        ["---", *("---:" for _ in parts)],
        *(
            [f"`{system}`", *(_number(part["scores"][system]["value"]) for part in parts.values())]
            for system in order(results, results["tables"][WHOLE])
        ),
    ]
    return f"**Note F1 on parts of the windows**; parts.csv has the intervals.\n\n{markdown_rows(lines)}"


def official_text(results: Mapping[str, Any]) -> str:
    """Return our numbers under the published conditions beside the published ones, and why they differ."""
    names = [name for name in HEADINGS if name != results["ranked_by"]]
    ours, published = results["tables"][WHOLE], results["published"]
    lines = [["system", *(HEADINGS[name] for name in names)], ["---", *("---:" for _ in names)]]
    for system, row in published["table"].items():
        lines.append([f"{system}, published", *(_number(row.get(name)) for name in names)])
    for system in order(results, ours):
        cells = ours["scores"][system]
        lines.append([f"`{system}`", *(_number(cells.get(name, {}).get("value")) for name in names)])
    reasons = "\n".join(f"- **{name}**: {reason}" for name, reason in published["differences"].items())
    return "\n\n".join([markdown_rows(lines), f"Published: {published['source']}. Why the numbers differ:", reasons])


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def write_table(name: str, columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> None:
    """Write a CSV file beside this script."""
    table = io.StringIO()
    writer = csv.DictWriter(table, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(HERE / name, table.getvalue().encode())


def fill(page: Path, text: str) -> None:
    """Write a text between the markers of a page."""
    content = page.read_text(encoding="utf-8")
    before, start, rest = content.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        msg = f"{page}: expected the markers {START} and {END}"
        raise SystemExit(msg)
    write_atomically(page, f"{before}{START}\n{text}\n{END}{after}".encode())


def main() -> None:
    """Run both protocols, write the table and the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory() as folder:
        results = {protocol: judge(protocol, Path(folder) / protocol) for protocol in PROTOCOLS}
    write_table("results.csv", COLUMNS, (row for name, found in results.items() for row in rows_of(name, found)))
    write_table("parts.csv", PART_COLUMNS, part_rows(results["honest"]))
    honest = f"{honest_text(results['honest'])}\n\n{near_text(results['honest'])}"
    honest = f"{honest}\n\n{parts_text(results['honest'])}"
    fill(HERE / "README.md", f"{honest}\n\n## Under the published conditions\n\n{official_text(results['official'])}")
    print(honest)


if __name__ == "__main__":
    main()
