"""Many requests as one file: the batch interface of OpenAI-compatible endpoints, which is cheaper and takes hours.

A file of requests is uploaded (``POST /files``), a batch is made of it (``POST /batches``), and when it is done its
answers are one file again (``GET /files/ID/content``), in any order, by the ids that the requests were given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from music_evals.errors import BackendError
from music_evals.models._endpoint import EndpointWriter, read_answer
from music_evals.protocols import Written

__all__ = ["BatchState", "check_batch", "request_lines", "submit_batch"]

_ENDPOINT: Final = "/v1/chat/completions"
_WINDOW: Final = "24h"
_OVER: Final = ("completed", "failed", "expired", "cancelled")


class BatchState(NamedTuple):
    """How a batch stands."""

    status: str
    done: bool
    n_done: int | None
    # number of the request -> its answer, or why there is none; of a batch that is done
    answers: Mapping[int, Written | BackendError]


def request_lines(writer: EndpointWriter, asked: Sequence[tuple[str, int]]) -> list[str]:
    """Return the lines of a file of requests, from prompts and seeds."""
    return [
        json.dumps(
            {"custom_id": str(number), "method": "POST", "url": _ENDPOINT, "body": writer.body(prompt, seed)},
            ensure_ascii=False,
        )
        for number, (prompt, seed) in enumerate(asked)
    ]


def submit_batch(writer: EndpointWriter, asked: Sequence[tuple[str, int]]) -> str:
    """Upload requests, make a batch of them, and return its id."""
    content = "".join(f"{line}\n" for line in request_lines(writer, asked)).encode()
    # asked once: a lost answer may stand for a batch that was made, and would be paid for twice
    uploaded = writer.request(
        "POST", "/files", data={"purpose": "batch"}, files={"file": ("requests.jsonl", content, "application/jsonl")}
    )
    body = {"input_file_id": _text(uploaded, "id"), "endpoint": _ENDPOINT, "completion_window": _WINDOW}
    return _text(writer.request("POST", "/batches", json=body), "id")


def check_batch(writer: EndpointWriter, batch: str, n: int) -> BatchState:
    """Return how a batch of `n` requests stands, with its answers when it is done."""
    found = _object(writer.request("GET", f"/batches/{batch}"))
    status = str(found.get("status"))
    counts = found.get("request_counts")
    n_done = counts.get("completed") if isinstance(counts, dict) else None
    if status not in _OVER:
        return BatchState(status, done=False, n_done=n_done, answers={})
    answers: dict[int, Written | BackendError] = {}
    for field in ("output_file_id", "error_file_id"):
        if found.get(field):
            text = writer.request("GET", f"/files/{found[field]}/content").text
            answers |= dict(_answer(line, n) for line in text.split("\n") if line.strip())
    missing = BackendError(f"the batch {batch} is {status} and holds no answer to this request; ask again")
    return BatchState(status, done=True, n_done=n_done, answers={i: answers.get(i, missing) for i in range(n)})


def _answer(line: str, n: int) -> tuple[int, Written | BackendError]:
    try:
        row = json.loads(line)
        number = int(row["custom_id"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BackendError(f"a line of the batch's answers cannot be read ({error}); try later") from error
    if not 0 <= number < n:
        raise BackendError(f"the batch answers a request that was not in it ({number}); check the endpoint")
    try:
        response = row["response"]
        if response["status_code"] != 200:
            return number, BackendError(f"the batch answered with status {response['status_code']}")
        return number, read_answer(response["body"])
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        said = str(row.get("error"))[:200]
        return number, BackendError(f"the batch holds an error in place of an answer: {said} ({error})")


def _object(response: Any) -> dict[str, Any]:
    try:
        found = response.json()
    except (ValueError, RecursionError) as error:
        raise BackendError("the endpoint answered with something other than JSON; does it have batches?") from error
    if not isinstance(found, dict):
        raise BackendError("the endpoint answered with something other than a JSON object; does it have batches?")
    return found


def _text(response: Any, field: str) -> str:
    value = _object(response).get(field)
    if not isinstance(value, str) or not value:
        raise BackendError(f"the endpoint's answer has no {field!r}; does it have batches?")
    return value
