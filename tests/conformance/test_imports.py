"""Who may import whom: the arrows of the house, read from the syntax tree of every module."""

from __future__ import annotations

import ast
import functools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.rules import ROOT, SOURCE, over, place, subfolders, tree_of
from tools import architecture

MODULES = sorted(SOURCE.rglob("*.py"))
HUB_FOLDERS = ("metrics", "datasets_scripts", "models", "spaces")

# A room may import itself and the rooms named here; everything else is a broken arrow. "" is the package itself, which
# offers lazily what the rooms hold. A dotted name is one module of a room.
_GROUND = {
    "annotations", "compiling", "csv_files", "deprecation", "errors", "files", "locations", "numerics", "options",
    "processes", "protocols", "remote", "repositories", "yaml_files",
}  # fmt: skip
_LAYER = {"audio", "symbolic", "lyrics", "metrics", "stats"}
_PLUGINS = {"models", "editing", "datasets"}
_PLUGIN_NEEDS = _GROUND | {"symbolic", "audio.io", "audio.rendering", "lyrics"}
_TASK = _GROUND | _LAYER | {"pipelines"}
ARROWS: dict[str, set[str]] = {
    "deprecation": set(),
    "errors": {"deprecation"},
    "compiling": {"files"},
    "csv_files": {"errors"},
    "files": {"errors"},
    "locations": {"errors", "files", "remote"},
    "numerics": set(),
    "options": set(),
    "processes": {"errors"},
    "remote": {"errors"},
    "repositories": {"errors"},
    "yaml_files": {"errors", "files"},
    "annotations": {"deprecation", "errors"},
    "protocols": {"annotations", "deprecation", "errors"},
    "symbolic": _GROUND,
    "audio": _GROUND,
    "lyrics": _GROUND,
    "metrics": {"annotations", "deprecation", "errors", "numerics"},
    "stats": {"annotations", "deprecation", "errors", "numerics"},
    "pipelines": _GROUND | _LAYER,
    "models": _PLUGIN_NEEDS,
    "editing": _PLUGIN_NEEDS | {"audio.loudness"},  # level is matched in one place, by the one measure of loudness
    "datasets": _PLUGIN_NEEDS,
    "benchmark": _TASK,
    "studies": _TASK | {"benchmark"},
    "preparation": _TASK | {"benchmark"},
    "leaderboard": _TASK | {"benchmark"},
    "hub": _TASK | {"benchmark"},
    "hf": _GROUND | {"pipelines", "metrics", "stats", "symbolic", "audio", "lyrics"},
    "caimap": _TASK | {"datasets.caimd", "hub", "studies"},
    "ui": _TASK | {"benchmark", "leaderboard", "hub", "studies"},
    "cli": _TASK | _PLUGINS | {"benchmark", "caimap", "leaderboard", "hub", "preparation", "ui", "studies"},
    "__main__": {"cli"},
}

# Cheap enough for the top of any module: the standard library, numpy and ourselves.
LIGHT = {"numpy", "music_evals"}
# Heavy packages at the top of a module, each with its reason.
TOP_LEVEL = {
    # tables and routes are declared: whoever opens a study has the extra
    "caimap": {"sqlalchemy", "alembic", "fastapi", "starlette", "jinja2"},
    "hf": {"evaluate"},  # base classes of evaluate's modules: whoever imports hf has evaluate
    "models": {"torch", "huggingface_hub"},  # networks are reached through the registry only
    "editing": {"torch", "huggingface_hub"},  # networks of our own, imported where a system builds them
}
# metrics and stats are provable without anything heavier than these.
MATHS = {"numpy", "scipy", "mir_eval"}


def room_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return "" if parts == ("__init__",) else parts[0]


def dotted(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def imported(path: Path) -> list[tuple[str, int, bool]]:
    """Return (module, line, at the top of the module) of every import, those inside functions included."""
    return list(_imports(path))


def _imports(path: Path) -> Iterator[tuple[str, int, bool]]:
    package = dotted(path) if path.name == "__init__.py" else dotted(path).rpartition(".")[0]
    waiting: list[tuple[ast.AST, bool]] = [(tree_of(path), True)]
    while waiting:
        node, top = waiting.pop()
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno, top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            # `from music_evals.metrics import inpainting` imports a module, `... import HOLD` a name: both start alike
            yield from ((f"{base}.{alias.name}", node.lineno, top) for alias in node.names)
        inside = top and not _is_deferred(node)
        waiting += [(child, inside) for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]


def _is_deferred(node: ast.AST) -> bool:
    """Tell whether what is inside runs later than the import, or never (`if TYPE_CHECKING`)."""
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    base = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


@pytest.mark.slow
@over(MODULES, place)
def test_arrows_are_kept(module: Path) -> None:
    room = room_of(module)
    allowed = ARROWS.get(room)
    broken = []
    for name, line, _ in imported(module):
        target = name.removeprefix("music_evals").removeprefix(".") if name.split(".")[0] == "music_evals" else None
        if target is None or room == "" or target.split(".")[0] in {room, "", "__version__"}:
            continue
        assert allowed is not None, f"{module.name} stands in no room: add {room!r} to ARROWS, with its arrows"
        if not any(target == arrow or target.startswith(f"{arrow}.") for arrow in allowed):
            broken.append(f"line {line}: {room} may not import {name}")
    assert not broken, "; ".join(broken)


@functools.cache
def folder_names() -> frozenset[str]:
    return frozenset(HUB_FOLDERS) | {path.name for house in HUB_FOLDERS for path in subfolders(house)}


@over(MODULES, place)
def test_no_module_imports_a_repository_folder(module: Path) -> None:
    scripts = folder_names() | {"benchmarks"}
    # `datasets` the package and `evaluate` are no repository folders, though `datasets_scripts` is
    broken = [f"line {line}: {name}" for name, line, _ in imported(module) if name.split(".")[0] in scripts]
    assert not broken, f"imports from a repository folder: {broken}"


@over(MODULES, place)
def test_heavy_packages_are_imported_where_they_are_used(module: Path) -> None:
    allowed = LIGHT | TOP_LEVEL.get(room_of(module), set()) | sys.stdlib_module_names
    heavy = [
        f"line {line}: {name}" for name, line, top in imported(module) if top and name.split(".")[0] not in allowed
    ]
    assert not heavy, f"imports at its top what belongs into a function: {heavy}"


@over([path for path in MODULES if room_of(path) in {"metrics", "stats"}], place)
def test_the_maths_needs_no_heavy_package(module: Path) -> None:
    allowed = MATHS | {"music_evals"} | sys.stdlib_module_names
    wrong = [f"line {line}: {name}" for name, line, _ in imported(module) if name.split(".")[0] not in allowed]
    assert not wrong


@over([path for path in MODULES if room_of(path) == "audio"], place)
def test_audio_never_imports_torch(module: Path) -> None:
    assert all(name.split(".")[0] != "torch" for name, _, _ in imported(module))


def test_every_room_of_the_tree_has_arrows() -> None:
    rooms = {room_of(path) for path in MODULES} - {""}
    assert rooms <= set(ARROWS), f"rooms without arrows: {sorted(rooms - set(ARROWS))}"
    # the table itself has no way up: what a room may import never may import the room
    for room, allowed in ARROWS.items():
        for target in {name.split(".")[0] for name in allowed}:
            assert room not in ARROWS[target], f"{room} and {target} may import each other"


def _benchmark_imports() -> dict[str, set[str]]:
    """Return module of the benchmark -> modules of the benchmark that it imports, both by their place in it."""
    room, package = SOURCE / "benchmark", "music_evals.benchmark."
    modules = {".".join(path.relative_to(room).with_suffix("").parts): path for path in sorted(room.rglob("*.py"))}
    found: dict[str, set[str]] = {}
    for name, path in modules.items():
        inner = (target[len(package) :] for target, _, _ in imported(path) if target.startswith(package))
        known = {prefix for target in inner for prefix in (target, target.rpartition(".")[0]) if prefix in modules}
        found[name] = known - {name}
    return found


def test_folders_of_tasks_never_import_each_other() -> None:
    """Nor does what they share know any of them: it finds them by what their folders name."""
    for name, targets in _benchmark_imports().items():
        task = name.rpartition(".")[0]
        others = {target for target in targets if "." in target and target.rpartition(".")[0] != task}
        assert not others, f"benchmark.{name} imports {sorted(others)}"


def test_no_generic_module_of_the_benchmark_serves_one_task() -> None:
    """What stands beside the folders of tasks is used by two of them at least, or by the engine, which all use."""
    imports = _benchmark_imports()
    users: dict[str, set[str]] = {name: set() for name in imports if "." not in name and name != "__init__"}

    def reach(name: str, task: str) -> None:
        for target in imports[name] & users.keys():
            if task not in users[target]:
                users[target].add(task)
                reach(target, task)

    for name in imports:
        if "." in name:
            reach(name, name.rpartition(".")[0])
    # for whoever reads what was written: hub, leaderboard, cards, verbs; and for the preparation of songs
    outside = {"load", "templates", "writers"}
    lonely = {name: sorted(tasks) for name, tasks in users.items() if len(tasks) < 2 and name not in outside}
    assert not lonely, f"generic modules that serve one task: {lonely}"


@over([path for house in HUB_FOLDERS for path in sorted((ROOT / house).rglob("*.py"))], place)
def test_repository_folders_never_import_one_another(script: Path) -> None:
    for node in ast.walk(tree_of(script)):
        found = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        found += [node.module or "." * node.level] if isinstance(node, ast.ImportFrom) else []
        assert not {name.split(".")[0] for name in found} & folder_names(), f"line {node.lineno}: {found}"


def test_import_music_evals_is_light(record_property: pytest.RecordProperty) -> None:
    code = (
        "import json, sys, time\n"
        "start = time.perf_counter()\n"
        "import music_evals\n"
        "seconds = time.perf_counter() - start\n"
        "print(json.dumps({'seconds': seconds, 'modules': sorted({n.split('.')[0] for n in sys.modules})}))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = json.loads(run.stdout)
    record_property("import_seconds", found["seconds"])  # told, not asserted: the machine may be busy
    heavy = {
        "scipy", "mir_eval", "torch", "transformers", "librosa", "evaluate", "datasets", "gradio", "ray", "music21",
        "symusic", "pretty_midi", "matplotlib", "pandas", "pyarrow", "huggingface_hub", "tqdm", "soundfile", "soxr",
    }  # fmt: skip
    assert not heavy & set(found["modules"])


def test_the_page_draws_these_imports() -> None:
    """Else: `python tools/architecture.py --write`."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert page.partition(architecture.START)[2].partition(architecture.END)[0].strip() == architecture.draw()


def test_public_names_resolve() -> None:
    import music_evals

    for name in getattr(music_evals, "__all__", []):
        assert getattr(music_evals, name) is not None
