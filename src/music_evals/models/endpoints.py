"""A language model behind an OpenAI-compatible endpoint, asked with httpx2.

Why not ``huggingface_hub.InferenceClient``: without a key it sends the Hub token of this machine to whatever address it
was given, it follows a redirect to another host with the prompt, it asks once only, it keeps one connection pool for
the whole process, and in offline mode it refuses a server on this very machine (a test holds it to the first three).
Why not the package ``openai``: its pause before it asks again can neither be cancelled nor last the minutes that a busy
server may ask for, it fills in a missing key from ``OPENAI_API_KEY``, and what would remain for it is one POST.
"""

from __future__ import annotations

import datetime as dt
import email.utils
import json
import math
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from music_evals.errors import BackendError, InvalidInputError, ModelUnavailableError, importing
from music_evals.models.language_models import MAX_NEW_TOKENS, NOTHING, check_decoding, checked_name
from music_evals.protocols import Written
from music_evals.remote import is_loopback

__all__ = ["EndpointWriter", "read_answer"]

_BATCHED: Final = "/v1/chat/completions"
_WINDOW: Final = "24h"
_OVER: Final = ("completed", "failed", "expired", "cancelled")


class BatchState(NamedTuple):
    """How a batch stands."""

    status: str
    done: bool
    n_done: int | None
    # number of the request -> its answer or error; of a batch that is done
    answers: Mapping[int, Written | BackendError]


class EndpointWriter:
    """A server that speaks ``POST .../chat/completions`` as OpenAI's does: hosted models, vLLM, llama.cpp, Ollama."""

    # The key is read from the environment, sent to this address only (redirects are not followed) and written nowhere.
    # Seeds are sent along; what a server does with them is up to the server. `requests_per_minute` spaces requests
    # evenly, those that are sent again too.

    batch_size = 1

    def __init__(
        self,
        url: str,
        model: str,
        *,
        name: str | None = None,
        api_key_env: str | None = None,
        max_new_tokens: int = MAX_NEW_TOKENS,
        temperature: float | None = None,
        top_p: float | None = None,
        options: Mapping[str, Any] = NOTHING,
        timeout_sec: float = 300.0,
        retries: int = 5,
        concurrency: int = 4,
        requests_per_minute: float | None = None,
        allow_http: bool = False,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        check_decoding(temperature, top_p, max_new_tokens)
        if not (timeout_sec > 0 and retries >= 0 and concurrency >= 1):
            raise InvalidInputError(
                f"expected a timeout above 0 s, at least 0 retries and at least 1 request at once; got {timeout_sec}, "
                f"{retries} and {concurrency}"
            )
        if requests_per_minute is not None and not 0 < requests_per_minute < float("inf"):
            raise InvalidInputError(f"requests a minute must be above 0 and finite, got {requests_per_minute}")
        self.url = _checked_url(url)
        self.model = checked_name(model)
        self.name = checked_name(Path(model).name if name is None else name)
        self.concurrency = concurrency
        self._key_name = api_key_env
        self._key = _read_key(api_key_env)
        if (
            self._key is not None
            and not allow_http
            and urlsplit(self.url).scheme == "http"
            and not is_loopback(self.url)
        ):
            raise InvalidInputError(
                f"{self.url} is plain http, over which anybody on the way could read the key; give the https address, "
                "or no key; `allow_http=True` sends it all the same"
            )
        defaults = {"max_tokens": max_new_tokens, "temperature": temperature, "top_p": top_p}
        self._fields = _merged(defaults, options)
        is_greedy = self._fields.get("temperature") == 0
        self.deterministic = is_greedy or "seed" in self._fields
        self._sends_seed = not is_greedy and "seed" not in options
        self._timeout_sec = timeout_sec
        self._retries = retries
        self._interval_sec = 0.0 if requests_per_minute is None else 60 / requests_per_minute
        self._next_turn = 0.0
        self._cancelled = threading.Event()
        self._sleep = self._cancelled.wait if sleep is None else sleep
        with importing("models", "a language model behind an endpoint"):
            import httpx2
        self._httpx: Any = httpx2
        self._lock = threading.Lock()
        self._open_client: Any = None

    def write(self, prompts: Sequence[str], *, seed: int) -> list[Written]:
        """Return one answer a prompt, in their order, asked one after the other."""
        answers = []
        for prompt in prompts:
            response = self._post(self.body(prompt, seed))
            try:
                answers.append(read_answer(response.json()))
            except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
                raise BackendError(
                    f"{self.url} answered with something other than a chat completion ({type(error).__name__}: "
                    f"{self._shown(str(error))}); expected JSON with a text in choices[0].message.content"
                ) from error
        return answers

    def describe(self) -> Mapping[str, Any]:
        """Return what decides its answers; never the key."""
        about = {"kind": "endpoint", "url": self.url, "model": self.model, "request": dict(self._fields)}
        return {**about, "sends_seed": self._sends_seed}

    def cancel(self) -> None:
        """Let requests that are under way end, and try none again, until the writer is closed."""
        self._cancelled.set()

    def close(self) -> None:
        """Close the connections; they are opened again when they are needed."""
        with self._lock:
            client, self._open_client = self._open_client, None
        if client is not None:
            client.close()
        self._cancelled.clear()

    def _client(self) -> Any:
        with self._lock:
            if self._open_client is None:
                headers = {} if self._key is None else {"Authorization": f"Bearer {self._key}"}
                self._open_client = self._httpx.Client(
                    headers=headers,
                    timeout=self._timeout_sec,
                    follow_redirects=False,
                    trust_env=not is_loopback(self.url),  # no proxy stands between us and ourselves
                    limits=self._httpx.Limits(max_connections=self.concurrency),
                )
            return self._open_client

    @property
    def max_new_tokens(self) -> int | None:
        """The longest answer that is asked for; None where the server decides."""
        held = [self._fields.get(name) for name in ("max_tokens", "max_completion_tokens")]
        return next((value for value in held if type(value) is int), None)

    def body(self, prompt: str, seed: int) -> dict[str, Any]:
        """Return what is sent for a prompt."""
        body = {"model": self.model, "messages": [{"role": "user", "content": prompt}], **self._fields}
        return {**body, "seed": seed} if self._sends_seed else body

    # A batch is many requests as one file, which is cheaper and takes hours: the file is uploaded (``POST /files``), a
    # batch is made of it (``POST /batches``), and when it is done its answers are one file again
    # (``GET /files/ID/content``), in any order, by the ids that the requests were given.

    def submit(self, prompts_and_seeds: Sequence[tuple[str, int]]) -> str:
        """Hand in prompts and seeds as one batch, and return its id."""
        requests = (
            {"custom_id": str(number), "method": "POST", "url": _BATCHED, "body": self.body(prompt, seed)}
            for number, (prompt, seed) in enumerate(prompts_and_seeds)
        )
        content = "".join(f"{json.dumps(request, ensure_ascii=False)}\n" for request in requests).encode()
        # sent once: a lost answer may stand for a batch that exists and would be paid for twice
        uploaded = self.request(
            "POST",
            "/files",
            data={"purpose": "batch"},
            files={"file": ("requests.jsonl", content, "application/jsonl")},
        )
        body = {"input_file_id": _text(uploaded, "id"), "endpoint": _BATCHED, "completion_window": _WINDOW}
        return _text(self.request("POST", "/batches", json=body), "id")

    def collect(self, batch: str, n: int) -> BatchState:
        """Return how a batch of `n` requests stands, with its answers when it is done."""
        content = _object(self.request("GET", f"/batches/{batch}"))
        status = str(content.get("status"))
        counts = content.get("request_counts")
        n_done = counts.get("completed") if isinstance(counts, dict) else None
        if status not in _OVER:
            return BatchState(status, done=False, n_done=n_done, answers={})
        answers: dict[int, Written | BackendError] = {}
        for field in ("output_file_id", "error_file_id"):
            if content.get(field):
                text = self.request("GET", f"/files/{content[field]}/content").text
                answers |= dict(_answer(line, n) for line in text.split("\n") if line.strip())
        missing = BackendError(f"the batch {batch} is {status} and holds no answer to this request; ask again")
        return BatchState(status, done=True, n_done=n_done, answers={i: answers.get(i, missing) for i in range(n)})

    def request(self, method: str, path: str, **content: Any) -> Any:
        """Send a request of another kind once, to a path beside the chat completions, and return a good answer."""
        self._take_turn()
        try:
            outcome: Any = self._client().request(
                method, f"{self.url.removesuffix('/chat/completions')}{path}", **content
            )
        except self._httpx.RequestError as error:
            outcome = error
        return self._checked_response(outcome, 1)

    def _take_turn(self) -> None:
        """Wait until the next request may be sent."""
        if not self._interval_sec:
            return
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next_turn)
            self._next_turn = turn + self._interval_sec
        if turn > now:
            self._sleep(turn - now)
        if self._cancelled.is_set():
            raise ModelUnavailableError(f"{self.url}: cancelled before the request was sent")

    def _post(self, body: Mapping[str, Any]) -> Any:
        """Send a request, again where that may help, and return a good answer."""
        for attempt in range(self._retries + 1):
            self._take_turn()
            try:
                outcome: Any = self._client().post(self.url, json=body)
            except self._httpx.RequestError as error:
                outcome = error
            wait_sec = self._pause_sec(outcome, attempt)
            last = wait_sec is None or attempt == self._retries
            if wait_sec is not None and not last and not self._cancelled.is_set():
                self._sleep(wait_sec)
            if last or self._cancelled.is_set():
                return self._checked_response(outcome, attempt + 1)
        raise AssertionError  # the last attempt returns or raises

    def _pause_sec(self, outcome: Any, attempt: int) -> float | None:
        """Return how long to wait before asking again; None where that would not help."""
        wait_sec = float(min(2**attempt, _MOST_WAIT_SEC))
        if isinstance(outcome, self._httpx.TransportError):
            return wait_sec
        if isinstance(outcome, Exception) or (outcome.status_code not in {408, 429} and outcome.status_code < 500):
            return None
        header = outcome.headers.get("retry-after")  # seconds, or the date of an end
        try:
            seconds = float("nan" if header is None else header)
        except ValueError:
            try:
                end = email.utils.parsedate_to_datetime(header)
            except ValueError:
                return wait_sec
            now = dt.datetime.now(end.tzinfo or dt.UTC)
            seconds = (end.replace(tzinfo=end.tzinfo or dt.UTC) - now).total_seconds()
        return wait_sec if math.isnan(seconds) else min(max(seconds, 0.0), _MOST_RETRY_AFTER_SEC)

    def _checked_response(self, outcome: Any, times: int) -> Any:
        if isinstance(outcome, self._httpx.TimeoutException):
            raise BackendError(
                f"{self.url} did not answer within {self._timeout_sec:g} s, {times} times; try later"
            ) from outcome
        if isinstance(outcome, self._httpx.TransportError):
            raise ModelUnavailableError(
                f"{self.url} cannot be reached ({outcome}); check address, server and network"
            ) from outcome
        if isinstance(outcome, Exception):  # it came, and is not what its head says
            raise BackendError(
                f"the answer of {self.url} cannot be read ({self._shown(str(outcome))}); try later"
            ) from outcome
        status = outcome.status_code
        if status == 200:
            return outcome
        if status in {401, 403}:
            # the answer is not quoted: some servers put parts of the key in it
            held = f"the key in ${self._key_name}" if self._key_name else "a request without a key; name its variable"
            raise ModelUnavailableError(f"{self.url} refused {held} (status {status})")
        reason = f"status {status}: {self._shown(outcome.text)}"
        if status == 404:
            raise ModelUnavailableError(
                f"{self.url} does not exist, or has no model {self.model!r} ({reason}); check both"
            )
        if 300 <= status < 400:
            raise BackendError(
                f"{self.url} sends elsewhere (status {status}), which is not followed; give the final address"
            )
        often = f", {times} times" if times > 1 else ""
        raise BackendError(f"{self.url} answered with an error{often} ({reason})")

    def _shown(self, text: str) -> str:
        """Return the beginning of what a server said, on one line and without the key."""
        return (text if self._key is None else text.replace(self._key, "***")).strip().replace("\n", " ")[:200]


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port  # raises for one that is no number
    except ValueError as error:
        raise InvalidInputError("the endpoint is no address; expected one such as http://localhost:8000/v1") from error
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        # not quoted: it may hold the key
        raise InvalidInputError(
            "the endpoint holds a user, password, query or fragment, which would stand in the records; give the plain "
            "address, and the key in an environment variable"
        )
    if parts.scheme not in {"http", "https"} or not host:
        raise InvalidInputError(
            f"the endpoint must be an http or https address such as http://localhost:8000/v1, got {url!r}"
        )
    path = parts.path.rstrip("/")
    if not path.endswith("/chat/completions"):
        path = (path or "/v1") + "/chat/completions"
    return parts._replace(path=path).geturl()


def _merged(defaults: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of every request, those of the options over ours."""
    wrong = [name for name in _OURS if name in options]
    if wrong:
        raise InvalidInputError(
            f"{', '.join(wrong)} cannot be an option of an endpoint: it is set for each request; leave it out"
        )
    return {name: value for name, value in {**defaults, **options}.items() if value is not None}


def _read_key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ModelUnavailableError(
            f"the environment variable {variable} holds no key; set it with: export {variable}=..."
        )
    if not (key.isascii() and key.isprintable()):
        raise ModelUnavailableError(
            f"the environment variable {variable} holds characters that a key cannot have; set it again"
        )
    return key


_OURS = ("messages", "model", "stream", "n")
"""Fields that no option may set: the prompt, the model, and a form of answer that is not read."""

_MOST_WAIT_SEC = 60.0
"""Longest pause of our own making; a server may ask for more."""
_MOST_RETRY_AFTER_SEC = 600.0


def read_answer(content: Mapping[str, Any]) -> Written:
    """Return the text of a chat completion; raise a builtin error for anything else."""
    choice = content["choices"][0]
    text = choice["message"]["content"]
    if not isinstance(text, str):
        raise TypeError(f"the content is {type(text).__name__}, not a text")
    reason = choice.get("finish_reason")
    usage = content.get("usage") or {}
    cut_off = None if reason is None else reason == "length"
    return Written(text, _count(usage, "prompt_tokens"), _count(usage, "completion_tokens"), cut_off)


def _count(usage: Mapping[str, Any], field: str) -> int | None:
    value = usage.get(field)
    return value if type(value) is int and value >= 0 else None


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
        message = str(row.get("error"))[:200]
        return number, BackendError(f"the batch holds an error in place of an answer: {message} ({error})")


def _object(response: Any) -> dict[str, Any]:
    try:
        content = response.json()
    except (ValueError, RecursionError) as error:
        raise BackendError("the endpoint answered with something other than JSON; does it have batches?") from error
    if not isinstance(content, dict):
        raise BackendError("the endpoint answered with something other than a JSON object; does it have batches?")
    return content


def _text(response: Any, field: str) -> str:
    value = _object(response).get(field)
    if not isinstance(value, str) or not value:
        raise BackendError(f"the endpoint's answer has no {field!r}; does it have batches?")
    return value
