"""Functions that take a graphics card where a page is served with one."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.zero_gpu import ZeroGPU

from music_evals.errors import FileTooLargeError, InvalidInputError
from music_evals.ui.gpu import MOST_SEC, START_SEC, moved_to_card, on_gpu


def double(number: int) -> int:
    """Twice a number."""
    return 2 * number


def test_without_the_package_a_function_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spaces", None)
    assert on_gpu(lambda _number: 1, call_sec=1)(double) is double


def test_a_folder_called_spaces_is_no_such_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spaces").mkdir()
    monkeypatch.delitem(sys.modules, "spaces", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert on_gpu(lambda _number: 1, call_sec=1)(double) is double
    sys.modules.pop("spaces", None)


def test_with_the_package_the_card_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def gpu(*, duration: Any) -> Any:
        return lambda function: lambda *values: asked.append(duration(*values)) or ("card", function(*values))

    monkeypatch.setitem(sys.modules, "spaces", SimpleNamespace(GPU=gpu))
    on_card = on_gpu(lambda number: number, call_sec=0.3)(double)
    assert [on_card(number) for number in (3, 0)] == [("card", 6), ("card", 0)]
    assert asked == [START_SEC + 1, START_SEC]
    with pytest.raises(InvalidInputError, match=rf"about {START_SEC + 120} s .* has {MOST_SEC}"):
        on_card(400)  # what is given too little is ended in its midst
    assert len(asked) == 2


def test_an_error_of_ours_comes_out_of_a_card_as_it_is(zero_gpu: ZeroGPU) -> None:
    def refuse(limit: int) -> int:
        raise FileTooLargeError("too long", unit="seconds", limit=limit)

    def count(limit: int) -> Any:
        yield from range(limit)
        refuse(limit)

    with pytest.raises(FileTooLargeError) as caught:
        on_gpu(lambda _limit: 1, call_sec=1)(refuse)(3)
    assert (str(caught.value), caught.value.unit, caught.value.limit) == ("too long", "seconds", 3)
    counted, found = on_gpu(lambda _limit: 1, call_sec=1)(count)(2), []
    with pytest.raises(FileTooLargeError):
        found.extend(counted)
    assert found == [0, 1]
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):  # a bug of ours is none of these
        on_gpu(lambda _number: 1, call_sec=1)(lambda number: 1 // number)(0)
    assert [call.function for call in zero_gpu.calls] == ["refuse", "count", "<lambda>"]


def test_a_package_that_is_broken_is_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spaces").mkdir()
    (tmp_path / "spaces" / "__init__.py").write_text("import no_such_package")
    monkeypatch.delitem(sys.modules, "spaces", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        on_gpu(lambda _number: 1, call_sec=1)(double)


@pytest.mark.parametrize("there", [True, False])
def test_a_model_is_on_the_card_while_it_works(monkeypatch: pytest.MonkeyPatch, *, there: bool) -> None:
    from music_evals.ui.spaces import gap_filling
    from music_evals.ui.spaces.gap_filling import Model as GapModel
    from music_evals.ui.spaces.melody_sources import example

    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    seen: list[Any] = []

    class Model:
        deterministic = sees_reference = False

        def to(self, device: str) -> None:
            seen.append(device)

        def inpaint(self, masked: Any, **_options: Any) -> Any:
            seen.append("inpaint")
            return np.full((len(masked), 96), 60 + len(seen), dtype=np.uint8)  # each time something else

    request = gap_filling.Request("probe", n_candidates=2, evaluate=False)
    known = GapModel("probe", "a folder", "vli", "sample", 1.0)
    monkeypatch.setattr(gap_filling, "_load", lambda _place: SimpleNamespace(inpainter=Model()))
    drawn = gap_filling._fill_on_gpu(known, example("Ode to Joy").tokens, request, None)
    assert [next(drawn).number, next(drawn).number] == [1, 2]
    drawn.close()
    assert seen == (["cuda", "inpaint", "inpaint", "cpu"] if there else ["inpaint", "inpaint"])
    seen.clear()
    with pytest.raises(ZeroDivisionError), moved_to_card(Model()):
        raise ZeroDivisionError
    assert seen == (["cuda", "cpu"] if there else [])
