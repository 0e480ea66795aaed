"""Every line of the page of commands runs as it stands from the wheel outside of a clone; some in a clone, too."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(
    r"^```bash\n(music-evals .*?)^```",
    (ROOT / "docs" / "commands.md").read_text(encoding="utf-8"),
    re.DOTALL | re.MULTILINE,
)
TOUR, WEIGHTS, HUB = ([line for line in block.replace("\\\n", " ").splitlines() if line] for block in BLOCKS)
QUICK = [line for line in TOUR if line.split()[1] in {"examples", "list", "frame", "completion"}]

RUN = """
import shlex, sys
from pathlib import Path
from music_evals.cli import main

if __name__ == "__main__":
    for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        assert main(shlex.split(line, comments=True)[1:]) == 0, line
"""

HELD = "music_evals/_repositories/"

BUILD = """
import setuptools.build_meta, sys
getattr(setuptools.build_meta, sys.argv[1])(sys.argv[2])
"""


class Place(NamedTuple):
    """Where a reader stands, and what of us is installed there."""

    folder: Path
    package: Path  # the folder that holds music_evals
    commands: Path

    def run(self, line: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a line of the terminal."""
        path = f"{self.commands}{os.pathsep}{os.environ['PATH']}"
        environment = {
            **os.environ,
            "PATH": path,
            "PYTHONPATH": str(self.package),
            "MUSIC_EVALS_CACHE": "cache",
            **more,
        }
        return subprocess.run(
            ["bash", "-c", line], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )

    def run_all(self, lines: list[str]) -> None:
        """Run lines that need no shell in one process: each in its own would import everything again."""
        program, listed = self.folder.parent / "run.py", self.folder.parent / "lines.txt"
        program.write_text(RUN, encoding="utf-8")
        listed.write_text("\n".join(lines), encoding="utf-8")
        done = self.run(f'"{sys.executable}" -P "{program}" "{listed}"')
        assert done.returncode == 0, done.stderr[-6000:]


def make_place(folder: Path, package: Path) -> Place:
    commands = folder.parent / f"bin_{folder.name}"
    commands.mkdir()
    command = commands / "music-evals"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m music_evals "$@"\n')
    command.chmod(0o755)
    (folder / "results").mkdir(exist_ok=True)
    return Place(folder, package, commands)


@pytest.fixture(scope="session")
def fresh_clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What git has of the repository, or will have when it is committed."""
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    folder = tmp_path_factory.mktemp("readme") / "clone"
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="session")
def wheel(fresh_clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that the source distribution makes, unpacked as pip does it; weights are empty, which packs sooner."""
    work = tmp_path_factory.mktemp("wheel")
    source = work / "source"
    shutil.copytree(fresh_clone, source)
    for path in source.glob("models/**/*.safetensors"):
        path.write_bytes(b"")
    subprocess.run([sys.executable, "-c", BUILD, "build_sdist", str(work)], cwd=source, capture_output=True, check=True)
    (packed,) = work.glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(work / "sdist", filter="data")
    (unpacked,) = (work / "sdist").iterdir()
    subprocess.run(
        [sys.executable, "-c", BUILD, "build_wheel", str(work)], cwd=unpacked, capture_output=True, check=True
    )
    (made,) = work.glob("*.whl")
    return made


@pytest.fixture(scope="session")
def places(fresh_clone: Path, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Place]:
    installed, elsewhere = (tmp_path_factory.mktemp(name) / name for name in ("site", "elsewhere"))
    elsewhere.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)  # noqa: S202 - our own
    for path in (installed / HELD).glob("models/**/*.safetensors"):
        shutil.copyfile(fresh_clone / path.relative_to(installed / HELD), path)
    return {"clone": make_place(fresh_clone, fresh_clone / "src"), "wheel": make_place(elsewhere, installed)}


def test_the_page_of_commands_has_three_blocks_of_lines() -> None:
    assert TOUR[0] == "music-evals examples"
    assert len(QUICK) >= 4
    assert all("--model" in line or "--encoder" not in line for line in WEIGHTS)
    assert {line.split()[1] for line in HUB} == {"publish", "push"}


@pytest.mark.slow
def test_the_wheel_holds_every_repository_folder_and_nothing_that_git_ignores(fresh_clone: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if name.startswith(HELD)}
    houses = ("metrics", "datasets_scripts", "models", "examples")
    files = (path for house in houses for path in (fresh_clone / house).rglob("*") if path.is_file())
    variants = set((fresh_clone / "models").glob("*/*/*"))  # weights of other data, which a clone alone has
    wanted = set(files) - variants
    assert held == {f"{HELD}{path.relative_to(fresh_clone).as_posix()}" for path in wanted}
    weights = [path.stat().st_size for path in wanted if path.suffix == ".safetensors"]
    assert wheel.stat().st_size + sum(weights) < 35_500_000  # eight networks of 2 to 5 MB are most of it


@pytest.mark.slow
def test_the_quick_lines_run_outside_of_the_clone(places: dict[str, Place]) -> None:
    place = places["wheel"]
    where = place.run(f'"{sys.executable}" -c "import music_evals; print(music_evals.__file__)"').stdout
    assert where.startswith(str(place.package)), "the tests are about this installation and not about ours"
    for line in QUICK:
        done = place.run(line)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        assert done.stdout or ">" in line, line


def test_what_is_published_is_a_clones_commit(places: dict[str, Place]) -> None:
    done = places["wheel"].run("music-evals publish note_f1 --org my-org --dry-run")
    assert done.returncode == 2
    assert "note_f1 is part of the installed package" in done.stderr


@pytest.mark.slow
def test_a_shipped_model_is_not_written_over(places: dict[str, Place]) -> None:
    done = places["wheel"].run("music-evals train models/anticipation_rnn/train.yaml")
    assert done.returncode == 2
    assert "that the package came with; --out says where to write" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("line", WEIGHTS, ids=lambda line: line.split()[1])
def test_a_line_without_its_weights_says_so(line: str, places: dict[str, Place], tmp_path: Path) -> None:
    done = places["clone"].run(line, HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path))  # where examples/ is
    assert done.returncode in {1, 2}
    assert "Traceback" not in done.stderr
    assert re.search("Qwen/Qwen3-0.6B|BAAI/bge-large-zh-v1.5", done.stderr)


@pytest.mark.slow
def test_every_line_of_the_tour_runs_from_the_wheel(places: dict[str, Place]) -> None:
    place = places["wheel"]
    place.run_all([line for line in TOUR if ">" not in line])
    for line in [line for line in TOUR if ">" in line]:
        done = place.run(line)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
    for line in TOUR:
        if out := re.search(r"--out (\S+)", line):
            assert any((place.folder / out[1]).iterdir()), line


@pytest.mark.slow
def test_quick_lines_and_one_with_a_model_and_a_data_set_run_in_the_clone(places: dict[str, Place]) -> None:
    """What else differs in a clone, where names are looked up, the pages of tasks show: `test_site.py`."""
    [judged] = [line for line in TOUR if "--model anticipation_rnn" in line]
    places["clone"].run_all([*(line for line in QUICK if ">" not in line), judged])


@pytest.mark.slow
def test_the_python_of_the_readme_runs_outside_of_the_clone(places: dict[str, Place]) -> None:
    code = "import doctest, sys; sys.exit(doctest.testfile(sys.argv[1], module_relative=False).failed)"
    done = places["wheel"].run(f"music-evals examples && \"{sys.executable}\" -c '{code}' '{ROOT / 'README.md'}'")
    assert done.returncode == 0, done.stdout + done.stderr
