"""What pyproject.toml cannot say: a wheel brings the repository folders along, so that names need no clone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
SHIPPED = ("metrics", "datasets_scripts", "models", "examples")
INSTALLED = Path("music_evals", "_repositories")  # as `music_evals.repositories.INSTALLED` has it
LEFT_OUT = {"__pycache__", "run"}  # caches, and what a training leaves behind


def shipped_files() -> Iterator[Path]:
    """Yield every file of the repository folders, relative to the root; not weights of other data (models/vli/folk)."""
    for folder in SHIPPED:
        for path in sorted((ROOT / folder).rglob("*")):
            inner = path.relative_to(ROOT)
            variant = folder == "models" and len(inner.parts) > 3  # they would double the wheel; a clone has them
            if path.is_file() and not variant and not LEFT_OUT.intersection(inner.parts) and path.name[0] != ".":
                yield inner


class BuildWithFolders(build_py):
    """Copies the repository folders beside the modules; an editable installation finds them where they are."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        place = Path(self.build_lib, INSTALLED)
        shutil.rmtree(place, ignore_errors=True)  # what an earlier build left, and the repository no longer has
        for inner in shipped_files():
            (place / inner).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / inner, place / inner)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:  # noqa: FBT001, FBT002 - setuptools' own
        place = Path(self.build_lib, INSTALLED)
        copied = [] if self.editable_mode else [str(place / inner) for inner in shipped_files()]
        return [*super().get_outputs(include_bytecode), *copied]


setup(cmdclass={"build_py": BuildWithFolders})
