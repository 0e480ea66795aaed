"""Count how deep a score lies: the functions and files of ours that are entered on the way to it.

`python tools/trace.py` prints all routes beside their limits in `shape.toml` (1 where one is exceeded), with `--lower`
it lowers these to what is counted now, and `--route beat_f_measure` lists the functions of one in their order. What is
entered before the first function of a metric is counted apart; functions of `audio/`, and old names that go with
the next release, are not counted. A route is walked once before it is counted: imports are not part of it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # not this folder: the standard library has a module of the name `trace`
from tools import shape  # noqa: E402  (beside this script)

OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_EVALUATE_OFFLINE")
ROUTES = tomllib.loads(shape.CONFIG.read_text(encoding="utf-8"))["depth"]["routes"]
BESIDE = ("metrics/catalogue.py", "metrics/arrays.py")  # no metric is computed there


class Trace:
    """The functions of ours that are entered within the ``with`` block, in the order of their first entry."""

    def __init__(self, package: Path) -> None:
        self.prefix = f"{package}/"
        self.entered: dict[CodeType, str] = {}

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code not in self.entered and code.co_filename.startswith(self.prefix):
            file = code.co_filename.removeprefix(self.prefix)
            is_function = code.co_flags & 1 and not code.co_name.startswith("<")  # no body of a class, no comprehension
            if is_function and not file.startswith(("audio/", "deprecation.py")):
                self.entered[code] = f"{file}: {code.co_qualname}"

    def __enter__(self) -> Self:
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def counts(self) -> dict[str, int]:
        """Return the number of functions and files, in all and before a metric is reached."""
        names = list(self.entered.values())
        metrics = (n for n, name in enumerate(names) if name.startswith("metrics/") and not name.startswith(BESIDE))
        counts: dict[str, int] = {}
        for kind, part in (("", names), ("_before", names[: next(metrics, None)])):
            counts[f"functions{kind}"] = len(part)
            counts[f"files{kind}"] = len({name.partition(":")[0] for name in part})
        return counts


def step_of(route: str, folder: Path) -> Callable[[], Any]:
    """Return what is counted: a function that walks the route, its files in `folder`."""
    if route == "beat_f_measure":
        import evaluate
        import numpy as np
        import soundfile

        paths = [str(folder / f"{gap}.wav") for gap in (11_025, 7_350)]
        for path, gap in zip(paths, (11_025, 7_350), strict=True):  # clicks, 2 and 3 a second
            soundfile.write(path, np.where(np.arange(6 * 22_050) % gap, 0.0, 0.9), 22_050)
        place = str(ROOT / "metrics" / route)
        return lambda: evaluate.load(place, cache_dir=str(folder)).compute(references=paths[:1], predictions=paths[1:])
    from music_evals.cli import main

    runs, midi = iter(range(10)), ROOT / "examples" / "midi"
    return lambda: main(ROUTES[route].format(midi=midi, out=folder / str(next(runs))).split())


def trace(route: str, folder: Path) -> Trace:
    """Walk a route twice, and note the functions of the second time."""
    import music_evals

    folder.mkdir(exist_ok=True)
    step, entered = step_of(route, folder), Trace(Path(music_evals.__file__).parent)
    with contextlib.redirect_stdout(io.StringIO()):
        step()
        with entered:
            step()
    return entered


def count_all() -> dict[str, int]:
    """Return the counts of all routes, walked in one other process."""
    command = [sys.executable, __file__, *(word for route in ROUTES for word in ("--route", route))]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    by_route: dict[str, dict[str, int]] = json.loads(printed.splitlines()[-1])
    return {f"{route}_{name}": number for route, counts in by_route.items() for name, number in counts.items()}


def main(arguments: list[str] | None = None) -> int:
    """Print the counts beside their limits, or one route; 1 where a limit is exceeded."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--route", action="append", choices=ROUTES, help="print its functions; may be given again")
    parser.add_argument("--lower", action="store_true", help="write what is counted now as the new limits")
    options = parser.parse_args(arguments)
    if options.route:
        with tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("ignore")
            os.environ.update(dict.fromkeys(OFFLINE, "1"), HF_HOME=folder)
            entered = {route: trace(route, Path(folder, route)) for route in options.route}
        print(*(name for walked in entered.values() for name in walked.entered.values()), sep="\n")
        print(json.dumps({route: walked.counts() for route, walked in entered.items()}))
        return 0
    text = shape.CONFIG.read_text(encoding="utf-8")
    counts, depth = count_all(), tomllib.loads(text)["depth"]
    print(shape.table(counts, depth))
    if options.lower:
        shape.CONFIG.write_text(shape.lowered(text, "depth.limit", counts), encoding="utf-8")
    return int(not options.lower and any(count > depth["limit"][name] for name, count in counts.items()))


if __name__ == "__main__":
    sys.exit(main())
