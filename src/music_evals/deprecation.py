"""Names that were changed: the old ones keep working for one release, with a `DeprecationWarning`."""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import sys
import types
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def warn_renamed(old: str, new: str, *, stacklevel: int = 3) -> None:
    """Warn the caller of a function that uses an old name."""
    msg = f"{old} is called {new} now; the old name goes with the next release"
    warnings.warn(msg, DeprecationWarning, stacklevel=stacklevel)


def module_getattr(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` (PEP 562) of a module in which names were changed, from old names to new ones."""

    def __getattr__(name: str) -> Any:  # noqa: N807
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn_renamed(f"{module}.{name}", names[name])
        return getattr(importlib.import_module(module), names[name])

    return __getattr__


class MovedModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules by their old names."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        """Return a spec for an old name."""
        return importlib.machinery.ModuleSpec(name, self) if name in self.names else None

    def exec_module(self, module: types.ModuleType) -> None:
        """Put the new module in the old one's place."""
        old = module.__name__
        warn_renamed(old, self.names[old])
        sys.modules[old] = importlib.import_module(self.names[old])  # whoever imports the old name gets the new module


def moved_modules(package: str, names: Mapping[str, str]) -> None:
    """Let modules of a package be imported by their old names, from names to names below the package."""
    moved = {f"{package}.{old}": f"{package}.{new}" for old, new in names.items()}
    for old, new in list(moved.items()):  # `from old_package import module` asks the package that took its place
        folder, _, name = old.rpartition(".")
        here = f"{moved.get(folder, folder)}.{name}"
        if here != new:
            moved.setdefault(here, new)
    # first: the new folder of a package that moved would give its modules a second time, by their old names
    sys.meta_path.insert(0, MovedModules(moved))


def renamed_options(**names: str) -> Callable[[Function], Function]:
    """Let a function take keyword arguments by their old names, from old names to new ones."""

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def renamed(*args: Any, **options: Any) -> Any:
            for old in names.keys() & options.keys():
                new = names[old]
                if new in options:
                    raise TypeError(f"{function.__name__}() takes {new!r}, which was called {old!r}; give one of them")
                warn_renamed(f"`{old}` of {function.__name__}()", f"`{new}`")
                options[new] = options.pop(old)
            return function(*args, **options)

        return renamed  # type: ignore[return-value]

    return decorate
