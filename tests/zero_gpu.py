"""ZeroGPU without the Hub: what goes into a call of the card and comes out of it is pickled, as its package does it."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pickle
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple, Self

from music_evals.annotations import EditorInfo, EditRequest, Weights
from music_evals.editing.system import Edited, Editor, Seeds

_PAGES = "music_evals.ui.spaces"


class Call(NamedTuple):
    """A call of the card."""

    function: str
    seconds: int  # that were asked for
    given: int  # bytes


class ZeroGPU:
    """The package ``spaces``: `GPU` decorates as its does (0.51), in this process; a worker is another one there."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.is_inside = False

    def GPU(self, task: Any = None, *, duration: Any = 60) -> Any:  # noqa: N802 (a name of that package)
        if task is None:
            return lambda function: self.GPU(function, duration=duration)

        def begun(values: Any, options: Any) -> tuple[Any, Any]:
            seconds = duration(*values, **options) if callable(duration) else duration
            sent = pickle.dumps((values, options))
            self.calls.append(Call(task.__name__, seconds, len(sent)))
            return pickle.loads(sent)  # type: ignore[no-any-return]  # noqa: S301 (our own)

        def regular(*values: Any, **options: Any) -> Any:
            values, options = begun(values, options)
            with self._inside():
                found = pickle.dumps(task(*values, **options))
            return pickle.loads(found)  # noqa: S301

        def generator(*values: Any, **options: Any) -> Iterator[Any]:
            values, options = begun(values, options)
            with self._inside():
                found = [pickle.dumps(value) for value in task(*values, **options)]
            yield from map(pickle.loads, found)

        return generator if inspect.isgeneratorfunction(task) else regular

    @contextlib.contextmanager
    def _inside(self) -> Iterator[None]:
        """Of an error, that package keeps the name of its class."""
        self.is_inside = True
        try:
            yield
        except Exception as error:  # noqa: BLE001 (whatever it is)
            raise RuntimeError(f"ZeroGPU worker error: {type(error).__name__}") from None
        finally:
            self.is_inside = False


@contextlib.contextmanager
def zero_gpu_pages() -> Iterator[ZeroGPU]:
    """Import the pages anew where the package is there; those of before are back afterwards."""
    import music_evals.ui

    def pages() -> dict[str, Any]:
        found = {name: module for name, module in sys.modules.items() if f"{name}.".startswith(f"{_PAGES}.")}
        return found | ({"spaces": sys.modules["spaces"]} if "spaces" in sys.modules else {})

    before, made = pages(), ZeroGPU()
    for name in before:
        del sys.modules[name]
    sys.modules["spaces"] = SimpleNamespace(GPU=made.GPU)  # type: ignore[assignment]
    try:
        importlib.import_module(_PAGES)
        yield made
    finally:
        for name in pages():
            del sys.modules[name]
        sys.modules.update(before)
        vars(music_evals.ui).pop("spaces", None)
        if _PAGES in before:
            music_evals.ui.spaces = before[_PAGES]  # type: ignore[attr-defined]


class Muffler(Editor):
    """An editing system with weights, which cannot be pickled."""

    licence = "CC0-1.0"
    made: list[Self] = []  # noqa: RUF012 (all that were made)

    def __init__(self, model: Any = None, *, level: float = 0.5) -> None:  # noqa: ARG002
        self.lock, self.level, self.places = threading.Lock(), level, ["cpu"]
        self.made.append(self)

    @classmethod
    def from_pretrained(cls, source: str, *, level: float = 0.5) -> Self:  # noqa: ARG003
        return cls(level=level)

    def to(self, device: str) -> Self:
        self.places.append(device)
        return self

    def network_calls(self, seconds: float) -> int:
        return round(10 * seconds)

    @property
    def info(self) -> EditorInfo:
        return EditorInfo(name="muffler", title="Muffler", weights=(Weights("here", "", self.licence),))

    def _edited(self, request: EditRequest, seeds: Seeds) -> Edited:  # noqa: ARG002
        assert request.audio is not None
        return Edited(request.audio * self.level, request.sample_rate)
