"""Every repository folder that becomes a Space says on its card what the Hub builds it with: Python and hardware."""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from pathlib import Path

from huggingface_hub import SpaceHardware
from packaging.specifiers import SpecifierSet
from tests.conformance.rules import ROOT, card_of, over, place, text_of, tree_of

FOLDERS = sorted(path.parent for house in ("metrics", "spaces") for path in (ROOT / house).glob("*/README.md"))
SUPPORTED = SpecifierSet(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"])
ZERO_GPU_PYTHON = {"3.12", "3.12.12"}  # of what ZeroGPU offers (3.10.13, 3.12.12), the one that the package supports


of_each_space = over(FOLDERS, place)


@functools.cache
def imported(path: Path) -> list[str]:
    """Return the modules that the top of a file imports; a name that is imported from a package may be one."""
    found: list[str] = []
    for node in tree_of(path).body:
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
    return found


def pages_of(app: Path) -> set[Path]:
    """Return the app and every file of `music_evals.ui` that it leads to."""
    found, waiting = set[Path](), [app]
    while waiting:
        path = waiting.pop()
        found.add(path)
        names = [name for name in imported(path) if name.startswith("music_evals.ui")]
        files = [(ROOT / "src" / name.replace(".", "/")).with_suffix(".py") for name in names]
        waiting += [file for file in files if file.is_file() and file not in found]
    return found


@functools.cache
def decorates_for_gpu(path: Path) -> bool:
    return any(
        isinstance(node, ast.FunctionDef) and any("on_gpu(" in ast.unparse(made) for made in node.decorator_list)
        for node in ast.walk(tree_of(path))
    )


def calls_gpu(app: Path) -> bool:
    """Tell whether a function of a page is decorated for the GPU.

    The page of a metric that compares tags imports its encoder where it is built.
    """
    module = app.with_name(f"{app.parent.name}.py")
    if module.is_file() and "TagsMetric" in text_of(module):
        return True
    return any(decorates_for_gpu(path) for path in pages_of(app))


def test_the_pages_that_call_the_gpu_are_found() -> None:
    apps = [path / "app.py" for path in FOLDERS if (path / "app.py").is_file()]
    assert {app.parent.name for app in apps if calls_gpu(app)} >= {
        "description",
        "inpainting",
        "tag_semantic_similarity",
    }


@of_each_space
def test_the_card_names_a_python_that_the_package_supports(folder: Path) -> None:
    """Without one the Hub builds with Python 3.10, where the package cannot be installed."""
    head, _ = card_of(folder)
    if head["sdk"] == "docker":
        return  # its Dockerfile chooses
    version = head.get("python_version")
    assert isinstance(version, str), "in quotes: 3.10 without them is the number 3.1"
    assert re.fullmatch(r"3\.\d+(\.\d+)?", version), "what the Hub takes"
    assert version in SUPPORTED


@of_each_space
def test_a_page_that_calls_the_gpu_suggests_hardware(folder: Path) -> None:
    head, _ = card_of(folder)
    hardware = head.get("suggested_hardware")
    if (folder / "app.py").is_file() and calls_gpu(folder / "app.py"):
        assert hardware is not None, "`music-evals publish` asks for the hardware that the card suggests"
    if hardware is not None:
        assert hardware in {known.value for known in SpaceHardware}
    if hardware == SpaceHardware.ZERO_A10G:
        assert head["sdk"] == "gradio", "ZeroGPU serves Gradio alone"
        assert head["python_version"] in ZERO_GPU_PYTHON
