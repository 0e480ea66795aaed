"""ZeroGPU: a function that takes a graphics card for as long as it runs, where the page is served with one.

On the Hub the package ``spaces`` hands a card to the calls that are decorated. Anywhere else nothing happens: the same
function runs on what is there.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

__all__ = ["moved_to_card", "on_gpu"]

Function = TypeVar("Function", bound=Callable[..., object])


def on_gpu(duration: int = 60) -> Callable[[Function], Function]:
    """Decorate a function for ZeroGPU where the package ``spaces`` is installed; elsewhere return it as it is.

    Examples
    --------
    >>> @on_gpu(duration=30)
    ... def write(seed):
    ...     return seed + 1
    >>> write(1)
    2

    """

    def decorate(function: Function) -> Function:
        decorator = _zero_gpu()
        return function if decorator is None else cast("Function", decorator(duration=duration)(function))

    return decorate


@contextlib.contextmanager
def moved_to_card(model: Any) -> Iterator[None]:
    """Hold a torch module on the graphics card as long as the ``with`` lasts, and on the CPU again after it."""
    # For the inside of a function of `on_gpu`: the card is there in no other place. Without a card nothing is moved.
    import torch

    if not torch.cuda.is_available():
        yield
        return
    model.to("cuda")
    try:
        yield
    finally:
        model.to("cpu")


def _zero_gpu() -> Callable[..., Callable[..., object]] | None:
    """Return ``spaces.GPU``, or None. A folder called `spaces` on the path is a namespace and has no such name."""
    try:
        package = importlib.import_module("spaces")
    except ModuleNotFoundError as error:
        if error.name != "spaces":
            raise  # the package is there, and broken
        return None
    return cast("Callable[..., Callable[..., object]] | None", getattr(package, "GPU", None))
