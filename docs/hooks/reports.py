"""Real reports for the gallery, made from the bundled examples by a process of its own while the pages are built.

`python docs/hooks/reports.py FOLDER` makes them alone.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
REPORTS: dict[str, tuple[str, dict[str, Any]]] = {
    "edits": (
        "preservation",
        {
            "reference": "examples/originals",
            "estimates": ["new_melody=examples/new_melody", "faster=examples/faster"],
            "audio": "embedded",  # a report of the gallery is one file
        },
    ),
    "inpainting": ("inpainting", {"dataset": "jsb_chorales", "config": "musib_official", "n_seeds": 1}),
    "lyrics": ("lyrics", {"dataset": "caimd", "config": "demo", "predictions": ["mine=examples/lyrics.jsonl"]}),
    "tags": (
        "descriptions",
        {"dataset": "caimd", "config": "demo", "predictions": ["mine=examples/tags.jsonl"], "encoder": "char-ngrams"},
    ),
    "discrepancy": (
        "discrepancy",
        {"dataset": "caimd", "config": "demo", "encoder": "char-ngrams", "n_permutations": 500},
    ),
}
"""Name -> task and settings of a run."""

_running: list[tuple[subprocess.Popen[str], tempfile.TemporaryDirectory[str]]] = []


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Begin to make the reports, and say where they will be."""
    folder = tempfile.TemporaryDirectory(prefix="music_evals_docs_")
    command = [sys.executable, "-P", __file__, folder.name]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    _running.append((process, folder))
    for name in REPORTS:
        path = str(Path(folder.name, name, "report.html"))
        files.append(File.generated(config, f"reports/{name}.html", abs_src_path=path))
    return files


def on_env(env: Any, **_: Any) -> Any:
    """Wait for them: from here on files are copied."""
    process, _folder = _running[-1]
    said = process.communicate()[0]
    if process.returncode:
        raise PluginError(f"the reports of the gallery could not be made:\n{said}")
    return env


def on_post_build(**_: Any) -> None:
    """Leave nothing behind."""
    _running.pop()[1].cleanup()


def on_build_error(**_: Any) -> None:
    """End what was begun."""
    while _running:
        process, folder = _running.pop()
        process.kill()
        process.wait()
        folder.cleanup()


def main(out: Path) -> None:
    """Make all reports."""
    import music_evals

    for name, (task, settings) in REPORTS.items():
        music_evals.run(task, out / name, engine="serial", **settings)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
