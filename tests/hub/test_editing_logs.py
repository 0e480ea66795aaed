"""The logs of an editing test on the Hub: sent when it is told, private, and of those who agreed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.editors import part
from tests.studies.conftest import build, samples

from music_evals.studies.editing.study import CONSENT
from music_evals.studies.storage import SubmissionStore, new_token

__all__ = ["build", "samples"]


@pytest.mark.parametrize("is_pushed", [True, False])
def test_logs_are_sent_when_it_is_told(house: Any, build: Any, tmp_path: Path, is_pushed: bool) -> None:
    study, name = build(), f"{house.org}/logs"
    store, token = SubmissionStore(study.submissions), new_token()
    store.submit(token, part(study, 0, 0))
    about = {"format": 1, "study": study.study, "kind": "editing", "slot": 0, "sent": 1, "part": "about"}
    store.submit(token, {**about, "content": {"answers": {CONSENT: True}}})
    command = ["editing-test", "collect", str(study.folder), "--logs", str(tmp_path / "logs"), "--licence", "cc0-1.0"]
    answer = house.cli(*command, *(["--push", name] if is_pushed else []))
    assert answer.code == 0, answer.stderr
    assert (tmp_path / "logs" / "data" / "edits.parquet").is_file()
    if is_pushed:
        repo = house.hub.repo("dataset", name)
        assert repo.private
        assert {"README.md", "data/edits.parquet", "data/samples.parquet"} <= set(repo.head.tree)
        assert house.cli(*command, "--push", name).code == 0  # again, over its own
        assert house.cli(*command, "--push", "logs").code == 2
        other = f"{house.org}/others"
        house.hub.put("dataset", other, {"data.csv": "1"})
        refused = house.cli(*command, "--push", other)
        assert (refused.code, house.hub.text("dataset", other, "data.csv")) == (1, "1")
    else:
        with pytest.raises(KeyError):
            house.hub.repo("dataset", name)
    refused = house.cli("editing-test", "collect", str(study.folder), "--push", name)
    assert refused.code == 2
    assert "--logs" in refused.stderr
