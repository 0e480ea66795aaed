"""The variant `musecpeval-0.3` beside the package that it is named after: pairs of real recordings, and music of ours.

Usage: python -m benchmarks.parity.musecpeval [--python ENVIRONMENT/bin/python] CHECKOUT [--write]

ENVIRONMENT is one that has the package, by default that of ``benchmarks.parity.backends``; CHECKOUT is a clone of
HilaManor/AudioEditingCode at the commit of README.md, whose page has originals and edits. Prints the largest difference
of each score; `--write` writes results.csv, the table of README.md and tests/golden/preservation_musecpeval_0_3.json.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.musib.tables import fill, write_csv
from benchmarks.parity.musecpeval.made_up import PAIRS, random_sections, write_pairs
from benchmarks.parity.side_by_side import Authors, verify_commit

from music_evals.audio.optional.process import environment
from music_evals.benchmark.formats import markdown_rows
from music_evals.files import write_atomically
from music_evals.metrics.arrays import MUSECPEVAL
from music_evals.metrics.catalogue import RELEASES, metric_of
from music_evals.pipelines.preservation import evaluate_preservation

HERE = Path(__file__).parent
GOLDEN = Path(__file__).parents[3] / "tests" / "golden" / "preservation_musecpeval_0_3.json"
RECORDINGS = Authors("HilaManor/AudioEditingCode", "f324c19")
OTHER_RATES = ("Zeppelin", "Beethoven", "Punk", "Rockabilly")
"""Of these originals the edits of MusicGen are compared too: 32 kHz, and shorter than their originals."""

WHOLE = "hiphop_MDDBChineseXinJing"
"""The pair that is also compared whole, 67 s: of more than a minute melody and timbre leave the rest out."""

EXCERPT_SEC = 12
WITH_SECTIONS = 6
"""Of so many pairs the sections are compared too: MSAF takes longer than all the rest."""

GOAL = 1e-6
COLUMNS = ("score", "n", "n_defined", "lowest", "highest", "difference", "equal")
PACKAGES = ("musecpeval", "librosa", "numpy", "scipy", "mir_eval", "msaf")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="of HilaManor/AudioEditingCode")
    own = environment("musecpeval") / "bin" / "python"
    parser.add_argument("--python", default=str(own), help="interpreter that has musecpeval")
    parser.add_argument("--write", action="store_true", help="results.csv, README.md and the golden values")
    options = parser.parse_args(arguments)
    verify_commit(options.checkout, RECORDINGS)
    with tempfile.TemporaryDirectory() as folder:
        pairs = [*excerpts(real_pairs(options.checkout), Path(folder)), *real_pairs(options.checkout, WHOLE)]
        with ThreadPoolExecutor(1) as beside:
            asked = beside.submit(ask, options.python, pairs=pairs, with_sections=WITH_SECTIONS)
            mine, theirs = ours(pairs), asked.result()
        rows = compare(mine, theirs["pairs"])
    for row in rows:
        print(*row.values(), sep="\t")
    if options.write:
        write_csv(HERE / "results.csv", COLUMNS, rows)
        page = HERE / "README.md"
        write_atomically(page, fill(page.read_text(encoding="utf-8"), {"results": table(rows, theirs)}).encode())
        write_atomically(GOLDEN, json.dumps(golden(options.python), indent=1).encode())


def excerpts(pairs: Sequence[tuple[str, str]], folder: Path) -> list[tuple[str, str]]:
    """Write the first seconds of each recording, at its own rate, and return the pairs of these."""
    import soundfile

    def cut(path: str) -> str:
        file = folder / f"{Path(path).stem}.wav"
        samples, rate = soundfile.read(path, frames=EXCERPT_SEC * soundfile.info(path).samplerate)
        soundfile.write(file, samples, rate, subtype="PCM_16")
        return str(file)

    return [(cut(reference), cut(estimate)) for reference, estimate in pairs]


def real_pairs(checkout: Path, only: str = "") -> list[tuple[str, str]]:
    """Return originals and edits: each original with the edit of their method, and some with that of MusicGen."""
    folder = checkout.resolve() / "docs" / "resources" / "audio"
    edits = [path for path in sorted(folder.glob("sup_samples/*_MDDB*_ours_*.mp3")) if "skipex" not in path.name]
    edits += [
        path for path in sorted(folder.glob("musicgen/*_MDDB*.mp3")) if any(one in path.name for one in OTHER_RATES)
    ]
    edits = [path for path in edits if path.name.startswith(only)]
    return [(str(folder / "orig" / f"{_original(path.name)}.mp3"), str(path)) for path in edits]


def _original(name: str) -> str:
    found = re.search(r"MDDB[A-Za-z0-9]+", name)
    if found is None:
        raise ValueError(name)
    return found[0]


def ask(python: str, **asked: Any) -> Any:
    """Return what the package gives, in an environment and a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [python, str(HERE / "theirs.py")]
        done = subprocess.run(  # our own script
            command, input=json.dumps(asked), capture_output=True, text=True, check=True, cwd=folder
        )
    return json.loads(done.stdout.splitlines()[-1])


def ours(pairs: Sequence[tuple[str, str]]) -> Sequence[Mapping[str, float]]:
    """Return the scores of our variant for each pair."""
    heard = [name for name in RELEASES[MUSECPEVAL] if metric_of(name).facet != "structure"]
    items: list[dict[str, Any]] = []
    for metrics, chosen in ((heard, pairs), (["structure"], pairs[:WITH_SECTIONS])):
        sides = [pair[0] for pair in chosen], [pair[1] for pair in chosen]
        found = evaluate_preservation(*sides, metrics=metrics, variant=MUSECPEVAL, per_item=True, failures="record")
        items = items or [dict(item) for item in found["per_item"]]
        for pair, item, told in zip(chosen, items, found["per_item"], strict=False):
            item.update(told)
            for name, why in {**told["errors"], **told["reasons"]}.items():
                print(f"{Path(pair[1]).name}: {name}: {why}")
    return items


def compare(one: Sequence[Mapping[str, float]], other: Sequence[Mapping[str, float | None]]) -> list[dict[str, Any]]:
    """Return a row for each score: over how many pairs, their values, and the largest difference."""
    rows = []
    for name in RELEASES[MUSECPEVAL]:
        couples = [(item[name], theirs[name]) for item, theirs in zip(one, other, strict=True) if name in item]
        both = [(mine, value) for mine, value in couples if value is not None and not math.isnan(mine)]
        agree = all((value is None) == math.isnan(mine) for mine, value in couples)
        values, difference = [value for _, value in both], max((abs(a - b) for a, b in both), default=float("nan"))
        rows.append(
            {
                "score": name,
                "n": len(couples),
                "n_defined": len(both),
                "lowest": f"{min(values, default=float('nan')):.4f}",
                "highest": f"{max(values, default=float('nan')):.4f}",
                "difference": f"{difference:.1e}",
                "equal": "yes" if agree and difference <= GOAL else "no",
            }
        )
    return rows


def table(rows: Sequence[Mapping[str, Any]], theirs: Mapping[str, Any]) -> str:
    """Return the differences as a table in Markdown, with the versions under which they were measured."""
    head = ("Score", "Pairs", "Defined in both", "Lowest of theirs", "Highest", "Largest difference", "Equal")
    body = [[f"`{row['score']}`", *(str(row[name]) for name in COLUMNS[1:])] for row in rows]
    versions = ", ".join(f"{name} {theirs['versions'][name]}" for name in PACKAGES)
    return f"{markdown_rows([head, ['---'] * len(head), *body])}\n\nThe package ran with {versions}."


def golden(python: str) -> dict[str, Any]:
    """Return what the package gives for music and sections of our own making."""
    sections = random_sections()
    with tempfile.TemporaryDirectory() as folder:
        theirs = ask(python, pairs=write_pairs(Path(folder)), sections=sections, with_sections=0)
    return {
        "source": {
            "package": "musecpeval 0.3.0, https://github.com/Yashvishe13/MuseCPEval at 0121201",
            "how": "harmony_score, rhythm_score, melody_score and timbre_score on recordings of our own making, "
            "best_boundary_shift and clustering_metrics on sections, run unchanged; only numbers are kept",
            "versions": theirs["versions"],
        },
        "pairs": [
            {"what": what, "scores": {name: value for name, value in found.items() if not name.startswith("segment")}}
            for what, found in zip(PAIRS, theirs["pairs"], strict=True)
        ],
        "sections": [
            {"reference": case[:2], "estimate": case[2:], "scores": found}
            for case, found in zip(sections, theirs["sections"], strict=True)
        ],
    }


if __name__ == "__main__":
    main()
