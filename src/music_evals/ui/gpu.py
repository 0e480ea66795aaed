"""ZeroGPU: a function that takes a graphics card for as long as it runs, where the page is served with one.

On the Hub the package ``spaces`` hands a card to the calls that are decorated, each in a forked process: what goes in
and comes out is pickled, and the process has the models that were loaded before it was forked. So a call is given what
names a model (a place, settings), the page loads the model first, and inside of the call the same cached loader finds
it. Anywhere else nothing happens: the same function runs on what is there.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar, cast

from music_evals.errors import InvalidInputError, MusicEvalsError

__all__ = ["MOST_SEC", "START_SEC", "moved_to_card", "on_gpu"]

Function = TypeVar("Function", bound=Callable[..., object])

START_SEC: Final = 10
"""To fork a process and move weights onto the card."""

MOST_SEC: Final = 120
"""That a call may ask for: visitors have a few minutes a day. What needs more is refused before a card is taken."""


def on_gpu(calls: Callable[..., int], *, call_sec: float) -> Callable[[Function], Function]:
    """Decorate a function for ZeroGPU where the package ``spaces`` is installed; elsewhere return it as it is.

    An error of ours that is raised on the card comes out as it is: ``spaces`` itself keeps the name of its class alone.

    Parameters
    ----------
    calls
        Given what the function is given; returns how often a network will be called, of which the seconds follow that
        are asked for: `START_SEC` and `call_sec` a call.
    call_sec
        Of one call of the network, rounded up.

    Raises
    ------
    InvalidInputError
        When the function is called: it needs more than `MOST_SEC`.

    Examples
    --------
    >>> @on_gpu(lambda seed, n_tokens: n_tokens, call_sec=0.03)
    ... def write(seed, n_tokens):
    ...     return seed + n_tokens
    >>> write(1, 8)
    9
    """

    def seconds(*values: Any, **options: Any) -> int:
        needed = START_SEC + math.ceil(calls(*values, **options) * call_sec)
        if needed > MOST_SEC:
            raise InvalidInputError(
                f"about {needed} s of a graphics card are needed, and a visitor has {MOST_SEC}; ask for fewer steps or "
                "for less music"
            )
        return needed

    def decorate(function: Function) -> Function:
        decorator = _zero_gpu()
        if decorator is None:
            return function
        work: Any = function
        streams = inspect.isgeneratorfunction(function)

        # inside, an error of ours is the answer, or the last value of a generator; outside it is raised
        @functools.wraps(function)
        def stream(*values: Any, **options: Any) -> Iterator[Any]:
            try:
                yield from work(*values, **options) if streams else [work(*values, **options)]
            except MusicEvalsError as error:
                yield error

        @functools.wraps(function)
        def answer(*values: Any, **options: Any) -> Any:
            return next(stream(*values, **options))

        inside: Any = decorator(duration=seconds)(stream if streams else answer)

        @functools.wraps(function)
        def checked_answer(*values: Any, **options: Any) -> Any:
            return _checked(inside(*values, **options))

        @functools.wraps(function)
        def checked_stream(*values: Any, **options: Any) -> Iterator[Any]:
            with contextlib.closing(inside(*values, **options)) as results:
                yield from map(_checked, results)

        return cast("Function", checked_stream if streams else checked_answer)

    return decorate


def _checked(result: Any) -> Any:
    if isinstance(result, MusicEvalsError):
        raise result
    return result


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
