"""What errors carry, and what the client of the Hub raises."""

from __future__ import annotations

import pickle
import socket

import pytest
from huggingface_hub.errors import HfHubHTTPError

from music_evals import errors
from music_evals.errors import InvalidInputError, MusicEvalsError, hub_errors, located, worded

KINDS = [found for found in vars(errors).values() if isinstance(found, type) and issubclass(found, MusicEvalsError)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_can_be_worded_anew(kind: type[MusicEvalsError]) -> None:
    plain = worded(kind, "as it is", {})
    assert (type(plain), str(plain), plain.kind, dict(plain.facts)) == (kind, "as it is", "", {})
    handed_on = pickle.loads(pickle.dumps(plain))  # noqa: S301  (our own)
    assert (type(handed_on), str(handed_on), vars(handed_on)) == (kind, "as it is", vars(plain))
    moved = located(worded(kind, "it broke", {"kind": "broken", "facts": {"limit": 3}}), "row 7")
    assert (type(moved), str(moved), moved.kind, moved.facts) == (kind, "row 7: it broke", "broken", {"limit": 3})


def test_an_error_carries_its_kind_and_facts() -> None:
    error = InvalidInputError("at most 3, got 4", kind="too_many", limit=3, found=4)
    assert (str(error), error.kind, error.facts) == ("at most 3, got 4", "too_many", {"limit": 3, "found": 4})


def test_what_the_client_raises_without_an_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants
    from huggingface_hub import get_session

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(hub_errors()):
            get_session().get(address)
    assert issubclass(HfHubHTTPError, hub_errors()[-1])


def test_former_names_of_fields_and_options_work_and_warn() -> None:
    with pytest.warns(DeprecationWarning, match="`found` of __init__.. is called `size` now"):
        large = errors.FileTooLargeError("too large", limit=1, found=2)  # type: ignore[call-arg]
    assert large.size == 2
    with pytest.warns(DeprecationWarning, match=r"FileTooLargeError\.found is called size now"):
        assert large.found == 2
    missing = errors.MissingBackendError("package", "extra", feature="training")
    with pytest.warns(DeprecationWarning, match=r"MissingBackendError\.what is called feature now"):
        assert missing.what == "training"
