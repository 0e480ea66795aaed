"""Golden numbers of our own: what the package computes, and which controls its pages have, so that changes are seen.

    python tools/digests.py                      # compute and compare; 1 where something moved, with a list of it
    python tools/digests.py --section modules    # one section
    python tools/digests.py --accept REASON      # write what is computed now, and what moved into CHANGELOG.md

The sections are files of `tests/golden/digests`, a small group of numbers a line. Numbers are equal within 1e-6,
relative or absolute. Paths, times, versions and hashes are left out, and so are sentences: texts are not frozen.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import json
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "golden" / "digests"
TOLERANCE = 1e-6
COMMANDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
LONGEST = 16  # numbers on a line
SHOWN = 40  # of what moved, on the terminal
OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_EVALUATE_OFFLINE", "HF_HUB_DISABLE_TELEMETRY")

# Keys of results that tell of the run, of the machine or of the environment, and not of the music.
OF_THE_RUN = re.compile(
    r"^(code|created|date|environment|files?|folder|git|hash|kernels|machine|music_evals|packages|path|published|python"
    r"|revision|seconds|sha256|started"
    r"|time|timing|versions?|when|version of .*|.*(_hash|_path|_seconds|_sha256|_versions?))$"
)

# Values: flat, and compared


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield path and value of each number, name or short list of them in what JSON can say."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not OF_THE_RUN.match(str(key)):
                yield from flat(inner, f"{path}/{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        if 0 < len(value) <= LONGEST and all(_is_plain(inner) for inner in value):
            yield path, [_rounded(inner) for inner in value]
            return
        for number, inner in enumerate(value):
            yield from flat(inner, f"{path}/{number}{_names_of(inner)}")
    elif hasattr(value, "tolist"):
        yield from flat(value.tolist(), path)
    elif _is_plain(value) and value not in (None, ""):
        yield path, _rounded(value)


def _is_plain(value: Any) -> bool:
    """Whether it is a number or a name, and no sentence, path, version or hash."""
    if isinstance(value, str):
        return len(value) <= 60 and not re.search(r"\s|/|[0-9a-f]{12}|^\d+\.\d+\.\d", value)
    return value is None or isinstance(value, bool | int | float)


def _rounded(value: Any) -> Any:
    if isinstance(value, str):
        return re.sub(r"-[0-9a-f]{6}$", "", value)  # of a table's name
    return float(f"{value:.10g}") if isinstance(value, float) and math.isfinite(value) else value


def _names_of(row: Any) -> str:
    """Return what names a row of a table, so that its path can be read."""
    names = ("name", "id", "item", "system", "first", "second", "metric", "score", "x", "y")
    known = [row[name] for name in names if isinstance(row.get(name), str)] if isinstance(row, Mapping) else []
    return "".join(f" {_rounded(name)}" for name in dict.fromkeys(known) if name and _is_plain(name))


def equal(first: Any, second: Any) -> bool:
    """Whether two values are equal, numbers within the tolerance; NaN is equal to NaN."""
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(equal, first, second))
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in (first, second)):
        same = math.isclose(first, second, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        return same or (math.isnan(first) and math.isnan(second))
    return type(first) is type(second) and bool(first == second)


def moved(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return a line for each value that is gone, new, or another."""
    lines = [f"- {path}: {old[path]}" for path in old.keys() - new.keys()]
    lines += [f"+ {path}: {new[path]}" for path in new.keys() - old.keys()]
    lines += [
        f"  {path}: {old[path]} -> {new[path]}" for path in old.keys() & new.keys() if not equal(old[path], new[path])
    ]
    return sorted(lines, key=lambda line: line[2:])


# Sections


def modules(scratch: Path) -> dict[str, Any]:
    """Compute every metric of `metrics/` on the example of its card: as it is, item by item, and in other variants."""
    import doctest

    import evaluate

    load = evaluate.load
    results: dict[str, Any] = {}
    kinds: dict[str, dict[str, Any]] = {
        "": {}, "official": {"variant": "official"}, "paper": {"variant": "paper"}, "companions": {"companions": True},
        "per item": {"per_item": True},
    }  # fmt: skip

    def loaded(place: str) -> Any:
        module = load(place, cache_dir=str(scratch))
        compute, name = module.compute, Path(place).name

        def record(**inputs: Any) -> Any:
            n_before = sum(key.startswith(f"{name}/") and key.count("/") == 1 for key in results)
            for kind, options in kinds.items():
                with (
                    warnings.catch_warnings(),
                    contextlib.suppress(TypeError, ValueError, ImportError),
                ):  # it has no such option
                    warnings.simplefilter("ignore")
                    results[f"{name}/{n_before} {kind}".strip()] = compute(**(inputs | options))
            return compute(**inputs)

        module.compute = record
        return module

    evaluate.load = loaded
    try:
        for folder in sorted(path for path in (ROOT / "metrics").iterdir() if (path / f"{path.name}.py").is_file()):
            card = (folder / "README.md").read_text(encoding="utf-8")
            example = card.partition("\n## Example\n")[2].partition("\n## ")[0]
            lines = doctest.script_from_examples("\n".join(re.findall(r"^(?:>>>|\.\.\.).*$", example, re.MULTILINE)))
            with contextlib.redirect_stdout(io.StringIO()):
                exec(lines, {})  # noqa: S102  # of our own card
    finally:
        evaluate.load = load
    return dict(flat(results))


def verbs(scratch: Path) -> dict[str, Any]:
    """Run the verbs on small inputs, and take what they print as JSON."""
    _write_inputs(scratch)
    _command(["examples"], scratch)
    results = {name: json.loads(_command(shlex.split(command), scratch)) for name, command in COMMANDS["verbs"].items()}
    return dict(flat(results))


def _write_inputs(folder: Path) -> None:
    """Write what the examples of the package lack: a study of two editors, ratings, and a song with its lyrics."""
    import numpy as np
    import soundfile

    samples = ["sample_id,piece_id,style,model,role"]
    edits = ["sample_id,editor_id,time_s,key_presses,mouse_clicks,hit_limit,EQ1,EQ2,EQ3"]
    for piece, gain in (("minuet", 1.0), ("march", 1.2), ("reel", 0.9)):
        for role, seconds, keys, answer in (("proposed", 300 * gain, 20, 4), ("baseline", 600, 25, 3)):
            samples.append(f"{piece}-{role},{piece},swing,{role},{role}")
            for editor, slow in (("a", 1.0), ("b", 1.5)):
                edits.append(f"{piece}-{role},{editor},{seconds * slow},{keys},40,False,{answer},3,2")
    (folder / "study").mkdir(parents=True)
    (folder / "study" / "samples.csv").write_text("\n".join(samples), encoding="utf-8")
    (folder / "study" / "edits.csv").write_text("\n".join(edits), encoding="utf-8")
    (folder / "songs").mkdir()
    tone = 0.1 * np.sin(2 * np.pi * 220 * np.arange(8 * 22_050) / 22_050)
    soundfile.write(folder / "songs" / "tune.wav", tone, 22_050)
    lines = "[00:00.50]床前明月光\n[00:02.50]疑是地上霜\n[00:04.50]举头望明月\n[00:06.50]低头思故乡\n"
    (folder / "songs" / "tune.lrc").write_text(lines, encoding="utf-8")


def _command(words: Sequence[str], folder: Path) -> str:
    """Run a verb in a folder, in this process, and return what it printed; its files stay there."""
    from music_evals.cli import main

    if words[:2] == ["listening-test", "agreement"]:  # rates what was judged before
        _write_ratings(folder)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code: Any = main(list(words))
        except SystemExit as error:  # of the parser
            code = error.code
    if code:
        raise SystemExit(f"music-evals {shlex.join(words)} ended with {code}:\n{err.getvalue()[-2000:]}")
    return out.getvalue()


def _write_ratings(folder: Path) -> None:
    """Write three ratings of each sound of the listening study before."""
    import pandas as pd

    pairs = pd.read_csv(folder / "heard" / "pairs.csv").query("system != 'reference'")
    rows = [
        f"{pair.item_id},{pair.system},{who},{1 + (place + who) % 5}"
        for place, pair in enumerate(pairs.sort_values(["item_id", "system"]).itertuples())
        for who in range(3)
    ]
    (folder / "ratings.csv").write_text("\n".join(["item,system,listener,rating", *rows]), encoding="utf-8")


def run(scratch: Path) -> dict[str, Any]:
    """Give the commands of `make run`, anew: what lies in results/ may be of other code.

    But for results/jsb, which takes longest: benchmarks/jsb_chorales/results.csv holds its numbers, and a slow test.
    """
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    commands = re.findall(r"^\t\$\(BIN\)/music-evals (.* --out (results/\S+).*)$", makefile, re.MULTILINE)
    for command, place in commands:
        if place == "results/jsb":
            continue
        out = scratch / place
        words = [sys.executable, "-m", "music_evals", *shlex.split(command.replace(place, str(out)))]
        subprocess.run(words, cwd=ROOT, check=True)
    return results_in(scratch / "results")


def results_in(folder: Path) -> dict[str, Any]:
    """Return the values of all results and tables in the folders of runs."""
    results = {}
    for path in sorted([*folder.glob("*/*.json"), *folder.glob("*/*.md")]):
        content, name = path.read_text(encoding="utf-8"), path.relative_to(folder).as_posix()
        results[name] = json.loads(content) if path.suffix == ".json" else table_numbers(content)
    return dict(flat(results))


def pages(scratch: Path) -> dict[str, Any]:
    """List the controls and fields of all pages."""
    from tools.pages import list_controls

    return list_controls(ROOT, scratch, _command)


def table_numbers(text: str) -> dict[str, list[float]]:
    """Return the numbers of each row of the tables of a page of Markdown; the words around them are not frozen."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    numbers = {str(place): re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])", row) for place, row in enumerate(rows)}
    return {place: [float(number) for number in row] for place, row in numbers.items() if row}


# Files


SECTIONS: dict[str, Callable[[Path], dict[str, Any]]] = {"modules": modules, "verbs": verbs, "pages": pages, "run": run}


def read(path: Path) -> dict[str, Any]:
    """Return the values of a file, none where it is missing."""
    groups = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    values = {group: value for group, value in groups.items() if not isinstance(value, dict)}
    groups = {group: value for group, value in groups.items() if group not in values}
    return values | {f"{group}/{name}": value for group, inner in groups.items() for name, value in inner.items()}


def written(values: Mapping[str, Any]) -> str:
    """Return the text of a file: JSON with a group of values a line, or with a control of a page."""
    groups: dict[str, Any] = {}
    for path in sorted(values):
        group, _, name = path.rpartition("/")
        if ": " in path:
            groups[path] = values[path]
        else:
            groups.setdefault(group, {})[name] = values[path]
    as_json = functools.partial(json.dumps, ensure_ascii=False)
    rows = (f"{as_json(group)}: {as_json(groups[group])}" for group in sorted(groups))
    return "{\n" + ",\n".join(rows) + "\n}\n"


def accepted(changelog: str, reason: str, lines: Mapping[str, Sequence[str]]) -> str:
    """Return the text of the changelog with a line on what moved, below what is not released."""
    counts = ", ".join(f"{len(moves)} of {name}" for name, moves in lines.items() if moves)
    first = "; ".join(textwrap.shorten(move, 60) for moves in lines.values() for move in moves[:3])
    entry = f"- Digests moved ({counts}): {reason}. First of them: {first}"
    line = "\n".join(textwrap.wrap(entry, 120, subsequent_indent="  ", break_on_hyphens=False)) + "\n"
    head, mark, rest = changelog.partition("## [Unreleased]\n")
    if not mark:
        raise SystemExit("CHANGELOG.md has no heading ## [Unreleased]")
    return f"{head}{mark}\n{line}{rest}" if counts else changelog


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute sections and compare them, or write them; 1 where something moved."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--section", action="append", choices=SECTIONS, help="may be given again (default: all)")
    parser.add_argument(
        "--accept", metavar="REASON", help="write what is computed now, and the reason into CHANGELOG.md"
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of the files (default: %(default)s)")
    options = parser.parse_args(arguments)
    sys.path[0] = str(ROOT)  # of a script it is this folder
    moves: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        os.environ.update(dict.fromkeys(OFFLINE, "1"), HF_HOME=f"{scratch}/hub", MUSIC_EVALS_CACHE=f"{scratch}/cache")
        os.environ.update(GRADIO_ANALYTICS_ENABLED="False", MPLBACKEND="Agg")
        for name in options.section or SECTIONS:
            path, place = options.folder / f"{name}.json", Path(scratch, name)
            place.mkdir()
            new = SECTIONS[name](place)
            moves[name] = moved(read(path), new)
            print(f"{name}: {len(moves[name])} of {len(new)} values moved")
            print("\n".join(moves[name][:SHOWN]), end="\n" if moves[name] else "")
            if options.accept and moves[name]:
                path.write_text(written(new), encoding="utf-8")
    if options.accept:
        changelog = ROOT / "CHANGELOG.md"
        changelog.write_text(accepted(changelog.read_text(encoding="utf-8"), options.accept, moves), encoding="utf-8")
        return 0
    return int(any(moves.values()))


if __name__ == "__main__":
    sys.exit(main())
