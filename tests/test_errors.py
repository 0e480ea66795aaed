"""What the client of the Hub raises."""

from __future__ import annotations

import socket

import pytest
from huggingface_hub.errors import HfHubHTTPError

from music_evals.errors import hub_errors


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
