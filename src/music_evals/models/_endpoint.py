"""A language model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import datetime as dt
import email.utils
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from music_evals.errors import BackendError, InvalidInputError, ModelUnavailableError
from music_evals.models._writing import MAX_NEW_TOKENS, NOTHING, check_decoding, checked_name
from music_evals.protocols import Written

__all__ = ["EndpointWriter"]


class EndpointWriter:
    """A server that speaks ``POST .../chat/completions`` as OpenAI's does: hosted models, vLLM, llama.cpp, Ollama.

    The key is read from the environment, sent to this address only (redirects are not followed) and written nowhere.
    Seeds are sent along; what a server makes of them is its own affair.

    Parameters
    ----------
    url
        http or https address: up to the host, up to ``/v1``, or the whole path ending in ``/chat/completions``.
    model
        Id of the model on the server.
    name
        System id in records and tables; None takes the last part of `model`.
    api_key_env
        Environment variable that holds the key; None sends none.
    max_new_tokens
        The longest answer, at least 1; sent as ``max_tokens``.
    temperature, top_p
        At least 0; above 0 and up to 1. None leaves it to the server. With a temperature of 0 it counts as
        deterministic and no seed is sent.
    options
        Further fields of the request; None as a value leaves a field out. They stand in the receipt: no secrets.
    timeout_sec
        Longest silence of the server.
    retries
        How often a request is sent again after 408, 429, a 5xx or a lost connection, at least 0.
    concurrency
        Requests at once, at least 1.
    sleep
        Waits that many seconds; for tests.

    Raises
    ------
    InvalidInputError
        A number out of range, or an address that is not http(s), or that holds a user, password or query.
    ModelUnavailableError
        The environment variable is not set, or holds no key.

    """

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
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        check_decoding(temperature, top_p, max_new_tokens)
        if not (timeout_sec > 0 and retries >= 0 and concurrency >= 1):
            msg = (
                f"expected a timeout above 0 s, at least 0 retries and at least 1 request at once; got {timeout_sec}, "
                f"{retries} and {concurrency}"
            )
            raise InvalidInputError(msg)
        self.url = _checked_url(url)
        self.model = checked_name(model)
        self.name = checked_name(Path(model).name if name is None else name)
        self.deterministic = temperature == 0
        self.max_new_tokens = max_new_tokens
        self.concurrency = concurrency
        self._key_name = api_key_env
        self._key = _read_key(api_key_env)
        fields = {"max_tokens": max_new_tokens, "temperature": temperature, "top_p": top_p, **options}
        self._fields = {key: value for key, value in fields.items() if value is not None}
        self._timeout_sec = timeout_sec
        self._retries = retries
        self._sleep = sleep

    def write(self, prompts: Sequence[str], *, seed: int) -> list[Written]:
        """Return one answer a prompt, in their order.

        Raises
        ------
        ModelUnavailableError
            The server cannot be reached, refuses the key or does not know the model.
        BackendError
            The server answered with an error again and again, or with something other than a text.

        """
        with self._client() as client, ThreadPoolExecutor(self.concurrency) as pool:
            return list(pool.map(lambda prompt: self._write_one(client, prompt, seed), prompts))

    def describe(self) -> Mapping[str, Any]:
        """Return what decides its answers; never the key."""
        return {"kind": "endpoint", "url": self.url, "model": self.model, "request": dict(self._fields)}

    def _client(self) -> Any:
        import httpx

        headers = {} if self._key is None else {"Authorization": f"Bearer {self._key}"}
        return httpx.Client(headers=headers, timeout=self._timeout_sec, follow_redirects=False)

    def _write_one(self, client: Any, prompt: str, seed: int) -> Written:
        body = {"model": self.model, "messages": [{"role": "user", "content": prompt}], **self._fields}
        if not self.deterministic:
            body["seed"] = seed
        response = self._post(client, body)
        self._check_status(response)
        try:
            return _read_answer(response.json())
        except (KeyError, IndexError, TypeError, ValueError) as error:
            msg = (
                f"{self.url} answered with something other than a chat completion ({type(error).__name__}: "
                f"{self._shown(str(error))}); expected JSON with a text in choices[0].message.content"
            )
            raise BackendError(msg) from error

    def _post(self, client: Any, body: Mapping[str, Any]) -> Any:
        """Send a request, again where that may help, and return the last answer."""
        import httpx

        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            try:
                response = client.post(self.url, json=body)
            except httpx.TimeoutException as error:
                if last:
                    msg = f"{self.url} did not answer within {self._timeout_sec:g} s, {attempt + 1} times; try later"
                    raise BackendError(msg) from error
                wait_sec = _backoff_sec(attempt)
            except httpx.TransportError as error:
                if last:
                    msg = f"{self.url} cannot be reached ({error}); check address, server and network"
                    raise ModelUnavailableError(msg) from error
                wait_sec = _backoff_sec(attempt)
            else:
                if last or not _may_recover(response.status_code):
                    return response
                wait_sec = _asked_wait_sec(response.headers.get("retry-after"), _backoff_sec(attempt))
            self._sleep(wait_sec)
        raise AssertionError  # the last attempt returns or raises

    def _check_status(self, response: Any) -> None:
        status = response.status_code
        if status == 200:
            return
        if status in {401, 403}:
            # the answer is not quoted: some servers put parts of the key in it
            held = f"the key in ${self._key_name}" if self._key_name else "a request without a key; name its variable"
            msg = f"{self.url} refused {held} (status {status})"
            raise ModelUnavailableError(msg)
        reason = f"status {status}: {self._shown(response.text)}"
        if status == 404:
            msg = f"{self.url} does not exist, or has no model {self.model!r} ({reason}); check both"
            raise ModelUnavailableError(msg)
        if 300 <= status < 400:
            msg = f"{self.url} sends elsewhere (status {status}), which is not followed; give the final address"
            raise BackendError(msg)
        times = f", {self._retries + 1} times" if _may_recover(status) and self._retries else ""
        msg = f"{self.url} answered with an error{times} ({reason})"
        raise BackendError(msg)

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
        msg = f"the endpoint must be an http or https address such as http://localhost:8000/v1, got {url!r}"
        raise InvalidInputError(msg)
    path = parts.path.rstrip("/")
    if not path.endswith("/chat/completions"):
        path = (path or "/v1") + "/chat/completions"
    return parts._replace(path=path).geturl()


def _read_key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        msg = f"the environment variable {variable} holds no key; set it with: export {variable}=..."
        raise ModelUnavailableError(msg)
    if not (key.isascii() and key.isprintable()):
        msg = f"the environment variable {variable} holds characters that a key cannot have; set it again"
        raise ModelUnavailableError(msg)
    return key


_MOST_WAIT_SEC = 60.0
"""Longest pause of our own making; a server may ask for more."""
_MOST_ASKED_SEC = 600.0


def _may_recover(status: int) -> bool:
    return status in {408, 429} or status >= 500


def _backoff_sec(attempt: int) -> float:
    return float(min(2**attempt, _MOST_WAIT_SEC))


def _asked_wait_sec(header: str | None, otherwise: float) -> float:
    """Return the pause of a Retry-After header: seconds, or the date of an end."""
    if header is None:
        return otherwise
    try:
        seconds = float(header)
    except ValueError:
        try:
            end = email.utils.parsedate_to_datetime(header)
        except ValueError:
            return otherwise
        now = dt.datetime.now(end.tzinfo or dt.UTC)
        seconds = (end.replace(tzinfo=end.tzinfo or dt.UTC) - now).total_seconds()
    return min(max(seconds, 0.0), _MOST_ASKED_SEC) if seconds == seconds else otherwise  # noqa: PLR0124 (NaN)


def _read_answer(content: Mapping[str, Any]) -> Written:
    """Return the text of a chat completion; raise a builtin error for anything else."""
    text = content["choices"][0]["message"]["content"]
    if not isinstance(text, str):
        msg = f"the content is {type(text).__name__}, not a text"
        raise TypeError(msg)
    usage = content.get("usage") or {}
    return Written(text, _count(usage, "prompt_tokens"), _count(usage, "completion_tokens"))


def _count(usage: Mapping[str, Any], field: str) -> int | None:
    value = usage.get(field)
    return value if isinstance(value, int) and value >= 0 else None
