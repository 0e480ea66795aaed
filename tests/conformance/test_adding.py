"""Adding is local: each guide of docs/contributing is followed in a copy of the repository, and the places are counted.

A guide's blocks with a title are what is written into the file of that name: a new file, lines of a diff, the end of a
module, or sections of a card. Its commands are run. What it adds must work and pass the conformance tests of its kind.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.benchmark.test_toy_task import FOLDER, NUMBERS, TASK, VERB
from tests.conformance import test_imports
from tests.conformance.rules import ROOT

pytestmark = pytest.mark.slow

LINES = re.MULTILINE | re.DOTALL
BLOCK = re.compile(r'^(?P<fence>`{3,})(?P<kind>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^(?P=fence)$', LINES)
SECTION = re.compile(r"^## .*?(?=^## |\Z)", LINES)
LEFT_ALONE = ("__pycache__", ".pytest_cache")


class Clone:
    """A copy of the repository: the library and its tests, and of the folders for the Hub those that are named."""

    def __init__(self, root: Path, *folders: str) -> None:
        self.root = root
        for name in ("src", "docs", "tests", *folders):
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("*.parquet", "*.onnx", "golden"))
        for name in ("metrics", "datasets_scripts", "models", "spaces"):
            (root / name).mkdir(exist_ok=True)
        for path in ROOT.iterdir():
            if not (root / path.name).exists() and path.name[0] != ".":
                (root / path.name).symlink_to(path)
        self._folders = {path for path in self.root.rglob("*") if path.is_dir()} | {self.root}
        self._before = self._files()

    def _files(self) -> dict[Path, bytes]:
        """Return the files of the copy; links to what is not copied are none."""
        paths = (path for top in self.root.iterdir() if not top.is_symlink() for path in top.rglob("*"))
        return {path: path.read_bytes() for path in paths if path.is_file() and not {*LEFT_ALONE} & {*path.parts}}

    def places(self) -> set[str]:
        """Return what was changed or added since, tests aside; a new folder is one place."""
        files = self._files()
        assert self._before.keys() <= files.keys()
        places = set()
        for path in (path for path, content in files.items() if self._before.get(path) != content):
            new = [folder for folder in path.parents if folder not in self._folders and folder.parent in self._folders]
            places.add((new[0] if new else path).relative_to(self.root).as_posix())
        return {place for place in places if not place.startswith("tests/")}

    def follow(self, guide: str) -> None:
        """Write what the guide writes, and run its commands, but for tests and golden numbers."""
        for block in BLOCK.finditer((ROOT / "docs" / "contributing" / f"{guide}.md").read_text(encoding="utf-8")):
            if block["title"]:
                self._write(self.root / block["title"], block["kind"], block["text"])
            elif block["kind"] == "bash" and not re.match(r"python (-m pytest|tools/)", block["text"]):
                self.run("bash", "-ec", block["text"])

    def _write(self, path: Path, kind: str, text: str) -> None:
        path.parent.mkdir(exist_ok=True)
        page = path.read_text(encoding="utf-8") if path.exists() else ""
        if kind == "diff":
            old = "".join(line[1:] for line in text.splitlines(keepends=True) if line[0] == " ")
            assert page.count(old) == 1, f"{path}: the diff fits nowhere, or twice"
            page = page.replace(old, "".join(line[1:] for line in text.splitlines(keepends=True)))
        elif kind == "markdown" and page:
            for section in re.findall(SECTION, text):
                heading, anew = section.partition("\n")[0], f"{section.strip()}\n\n"
                page, count = re.subn(rf"^{heading}\n.*?(?=^## |\Z)", anew.replace("\\", r"\\"), page, flags=LINES)
                assert count == 1, f"{path} has no section {heading}"
        else:
            page += ("\n\n" if page else "") + text
        path.write_text(page.rstrip() + "\n", encoding="utf-8")

    def run(self, *command: str) -> str:
        """Run a command in the copy and return what it prints."""
        bin_ = str(Path(sys.executable).parent)
        own = {
            "PYTHONPATH": f"{self.root / 'src'}{os.pathsep}{self.root}",
            "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}",
        }
        ended = subprocess.run(
            command, cwd=self.root, env=os.environ | own, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, f"{' '.join(command)}\n{ended.stdout[-6000:]}{ended.stderr[-6000:]}"
        return ended.stdout

    def python(self, code: str) -> str:
        return self.run(sys.executable, "-c", code).strip()

    def conformance(self, module: str, chosen: str) -> None:
        """Run chosen tests of a module; the others speak of what is not in the copy, or take long."""
        options = ("-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", "-k", chosen)
        self.run(sys.executable, "-m", "pytest", *options, f"tests/{module}.py")


def test_a_metric_is_a_function_a_row_and_a_folder(tmp_path: Path) -> None:
    clone = Clone(tmp_path / "clone", "metrics/interval_lcs")
    clone.follow("metric")
    assert clone.places() == {
        "src/music_evals/metrics/melody.py", "src/music_evals/metrics/catalogue.py", "metrics/ambitus_similarity",
    }  # fmt: skip
    computed = clone.python(
        "import evaluate, json\n"
        "from music_evals import Score, evaluate_preservation\n"
        "from music_evals.symbolic.notes import make_notes\n"
        "tune = lambda *pitches: Score(make_notes([0, 480, 960], [480] * 3, pitches), 480)\n"
        "pair = {'references': [tune(60, 64, 67)], 'predictions': [tune(62, 67, 62)]}\n"
        "folder = evaluate.load('./metrics/ambitus_similarity').compute(**pair)\n"
        "beside = evaluate_preservation(*pair.values(), metrics=['motif_recall'], companions=True)\n"
        "print(json.dumps([folder['ambitus_similarity'], beside['ambitus_similarity']]))\n"
        "from music_evals.cli import main\n"
        "main(['list', 'metrics', '--task', 'preservation'])"
    )
    numbers, listed = computed.split("\n", 1)
    assert json.loads(numbers) == [pytest.approx(5 / 7)] * 2
    assert "ambitus_similarity" in listed
    clone.conformance("conformance/test_metrics", "not published and not described")
    clone.conformance("metrics/test_modules", "says_of_itself or result_keys or unknown_config")


def test_a_task_is_a_folder_and_a_verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = Clone(tmp_path / "clone")
    files = {"benchmark/tasks/toy/__init__": FOLDER, "benchmark/tasks/toy/task": TASK, "cli/toy": VERB}
    for name, text in files.items():
        clone._write(clone.root / "src" / "music_evals" / f"{name}.py", "python", text.lstrip())
    assert clone.places() == {"src/music_evals/benchmark/tasks/toy", "src/music_evals/cli/toy.py"}
    numbers = tmp_path / "numbers.jsonl"
    numbers.write_text("".join(json.dumps(row) + "\n" for row in NUMBERS if row["found"] >= 0))
    verb = ["toy", "--numbers", str(numbers), "--out", str(tmp_path / "out"), "--json"]
    printed = clone.python(f"from music_evals.cli import main\nmain({verb})\nmain(['list', 'tasks'])")
    results, end = json.JSONDecoder().raw_decode(printed)
    assert results["scores"]["near"]["nearness"]["value"] == pytest.approx((0.9 + 0.9 + 1 + 1) / 4)
    assert "music-evals toy" in printed[end:]
    monkeypatch.setattr(test_imports, "SOURCE", clone.root / "src" / "music_evals")
    for name in files:
        test_imports.test_arrows_are_kept.__wrapped__(test_imports.SOURCE / f"{name}.py")
        test_imports.test_heavy_packages_are_imported_where_they_are_used.__wrapped__(
            test_imports.SOURCE / f"{name}.py"
        )
    test_imports.test_folders_of_tasks_never_import_each_other()
    test_imports.test_no_generic_module_of_the_benchmark_serves_one_task()


def test_an_editing_system_is_a_file_and_a_card(tmp_path: Path) -> None:
    clone = Clone(tmp_path / "clone")
    clone.follow("editing_system")
    assert clone.places() == {"src/music_evals/editing/fader.py", "models/fader"}
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "gain.json").write_text("0.5")
    clone.run(
        "music-evals", "edit", str(ROOT / "examples" / "originals"), "--system", "fader", "--seconds", "2",
        "--weights", str(tmp_path / "weights"), "--out", str(tmp_path / "out"),
    )  # fmt: skip
    assert list((tmp_path / "out" / "edits").rglob("*.*"))
    clone.conformance("conformance/test_models", "an_editing_system or only_editing_systems or every_model_folder")


def test_a_data_set_is_a_builder_and_a_folder(tmp_path: Path) -> None:
    clone = Clone(tmp_path / "clone")
    clone.follow("dataset")
    assert clone.places() == {"src/music_evals/datasets/tuning_forks", "datasets_scripts/tuning_forks"}
    loaded = clone.python(
        "from datasets import load_dataset\n"
        "rows = load_dataset('./datasets_scripts/tuning_forks', 'forks', split='test')\n"
        "print(len(rows), rows[0]['hz'])\n"
        "from music_evals.cli import main\n"
        "main(['list', 'datasets'])"
    )
    _, listed = loaded.split("12 440.0\n")
    assert "tuning_forks" in listed
    clone.conformance("conformance/test_datasets", "test")
