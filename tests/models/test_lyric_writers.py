from __future__ import annotations

import datetime as dt
import email.utils
import json
import logging
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.writing import CHARACTERS, Server, build_model, completion

from music_evals.errors import (
    BackendError,
    InvalidInputError,
    MissingBackendError,
    ModelUnavailableError,
    UnsupportedTypeError,
)
from music_evals.models import lyric_writers
from music_evals.models.lyric_writers import CallableWriter, EndpointWriter, TransformersWriter
from music_evals.protocols import WRITERS, LyricWriter, Written, load_plugin

PROMPTS = ["春风", "春风吹过青石板路", "abc abc", "路"]


@pytest.fixture(scope="module")
def sampler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose makers recommend sampling."""
    return build_model(tmp_path_factory.mktemp("models") / "tiny-chat", do_sample=True, temperature=0.9, top_k=20)


# ---- functions


def test_a_function_answers_in_order() -> None:
    writer = CallableWriter(str.upper, "upper", details={"version": 3})
    assert isinstance(writer, LyricWriter)
    assert writer.deterministic
    assert writer.write(["a", "b"], seed=7) == [Written("A"), Written("B")]
    assert writer.describe() == {"kind": "callable", "version": 3}


def test_a_function_may_take_the_seed() -> None:
    writer = CallableWriter(lambda prompt, seed: f"{prompt}{seed}", "seeded", takes_seed=True)
    assert not writer.deterministic
    assert [answer.text for answer in writer.write(["a", "b"], seed=7)] == ["a7", "b7"]


def test_a_function_must_return_a_text_and_have_a_name() -> None:
    with pytest.raises(UnsupportedTypeError, match="broken returned NoneType in place of a text"):
        CallableWriter(lambda _: None, "broken").write(["a"], seed=0)
    with pytest.raises(InvalidInputError, match="needs a name"):
        CallableWriter(str.upper, " ")


# ---- transformers


def test_registered_writers_load() -> None:
    assert load_plugin(WRITERS, "transformers", "writer") is TransformersWriter
    assert load_plugin(WRITERS, "endpoint", "writer") is EndpointWriter


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_texts_do_not_hang_on_the_batch(sampler: Path) -> None:
    texts = {}
    for batch_size in (1, 2, 4):
        writer = TransformersWriter(sampler, batch_size=batch_size, max_new_tokens=24)
        texts[batch_size] = [answer.text for answer in writer.write(PROMPTS, seed=5)]
    assert texts[1] == texts[2] == texts[4]
    assert len(set(texts[1])) == len(PROMPTS)  # they are not all the same
    backwards = [answer.text for answer in writer.write(PROMPTS[::-1], seed=5)]
    assert backwards == texts[1][::-1]


@pytest.mark.usefixtures("one_thread")
def test_seeds_make_texts_and_repeat_them(sampler: Path) -> None:
    writer = TransformersWriter(sampler, max_new_tokens=24)
    assert isinstance(writer, LyricWriter)
    assert not writer.deterministic
    torch.manual_seed(0)
    first = writer.write(PROMPTS, seed=1)
    torch.manual_seed(99)  # nobody else's randomness is used
    assert writer.write(PROMPTS, seed=1) == first
    assert writer.write(PROMPTS, seed=2) != first


@pytest.mark.usefixtures("one_thread")
def test_temperature_zero_is_greedy_as_transformers_has_it(sampler: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    writer = TransformersWriter(sampler, temperature=0.0, max_new_tokens=20)
    assert writer.deterministic
    assert writer.describe()["sampling"] == "likeliest token"
    found = writer.write(PROMPTS[:2], seed=1)
    assert writer.write(PROMPTS[:2], seed=2) == found
    tokenizer, model = AutoTokenizer.from_pretrained(sampler), AutoModelForCausalLM.from_pretrained(sampler)
    for prompt, answer in zip(PROMPTS[:2], found, strict=True):
        inputs = tokenizer(f"<s>u {prompt}<s>a", return_tensors="pt", return_token_type_ids=False)
        expected = model.generate(**inputs, do_sample=False, max_new_tokens=20, temperature=None, top_k=None)
        new = expected[0, inputs["input_ids"].shape[1] :]
        assert answer.text == tokenizer.decode(new, skip_special_tokens=True)
        assert answer.prompt_tokens == inputs["input_ids"].shape[1]
        assert answer.completion_tokens == len(new)


@pytest.mark.usefixtures("one_thread")
def test_only_the_likeliest_token_is_left_by_a_small_top_p(sampler: Path) -> None:
    greedy = TransformersWriter(sampler, temperature=0, max_new_tokens=12).write(PROMPTS, seed=0)
    narrow = TransformersWriter(sampler, temperature=1, top_p=1e-9, max_new_tokens=12)
    assert narrow.write(PROMPTS, seed=4) == greedy


def test_draws_follow_the_softmax_of_the_logits() -> None:
    n, wanted = 6000, torch.tensor([0.6, 0.3, 0.1, 0.0])
    draw = lyric_writers._Draw([f"prompt {number}" for number in range(n)], 0, torch.device("cpu"))
    drawn = draw(torch.empty(0), wanted.log().repeat(n, 1)).argmax(dim=1)
    found = torch.bincount(drawn, minlength=4) / n
    assert found[3] == 0
    torch.testing.assert_close(found, wanted, atol=0.02, rtol=0)  # three standard errors


def test_the_receipt_tells_what_decides_the_texts(sampler: Path) -> None:
    options = {"enable_thinking": False}
    receipt = TransformersWriter(sampler, name="mine", top_p=0.8, template_options=options).describe()
    assert receipt["sampling"] == {"temperature": 0.9, "top_k": 20, "top_p": 0.8}  # the makers' and ours
    assert receipt["prompt_form"] == "chat template"
    assert receipt["template_options"] == options
    assert receipt["dtype"] == "float32"
    assert receipt["device"] == ("cuda" if torch.cuda.is_available() else "cpu")
    assert receipt["content_hash"].startswith("sha256-")
    json.dumps(receipt)


@pytest.mark.usefixtures("one_thread")
def test_other_weights_have_another_content_hash(sampler: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    copy = build_model(tmp_path / "copy", do_sample=True, temperature=0.9, top_k=20)
    before = TransformersWriter(sampler).describe()["content_hash"]
    assert TransformersWriter(copy).describe()["content_hash"] == before
    weights = load_file(copy / "model.safetensors")
    save_file({name: value + 1e-3 for name, value in weights.items()}, copy / "model.safetensors", {"format": "pt"})
    assert TransformersWriter(copy).describe()["content_hash"] != before


def test_a_change_in_the_middle_of_large_weights_is_another_model(sampler: Path, tmp_path: Path) -> None:
    shutil.copytree(sampler, tmp_path / "large")
    content = bytearray(5 << 20)
    (tmp_path / "large" / "more.safetensors").write_bytes(content)
    before = TransformersWriter(tmp_path / "large").describe()["content_hash"]
    content[len(content) // 2] = 1
    (tmp_path / "large" / "more.safetensors").write_bytes(content)
    assert TransformersWriter(tmp_path / "large").describe()["content_hash"] != before


def test_pickled_weights_are_not_read(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    folder = build_model(tmp_path / "pickled")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelUnavailableError, match="cannot be loaded"):
        TransformersWriter(folder).write(["a"], seed=0)


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the Hub with a model that is not complete, its generation config left out; there is no connection."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    stored = tmp_path / "hub" / "models--lab--poet"
    build_model(stored / "snapshots" / COMMIT)
    (stored / "snapshots" / COMMIT / "generation_config.json").unlink()
    (stored / "refs").mkdir()
    (stored / "refs" / "main").write_text(COMMIT)
    return stored


def test_no_connection_is_not_a_model_without_generation_config(hub_cache: Path) -> None:
    with pytest.raises(ModelUnavailableError, match="hf download lab/poet"):
        TransformersWriter("lab/poet")
    known = hub_cache / ".no_exist" / COMMIT / "generation_config.json"  # the Hub said once that it has none
    known.parent.mkdir(parents=True)
    known.touch()
    writer = TransformersWriter("lab/poet", max_new_tokens=2)
    assert writer.describe()["commit"] == COMMIT
    assert writer.describe()["content_hash"] is None
    assert writer.deterministic


@pytest.mark.usefixtures("one_thread")
def test_chat_template_and_plain_prompt(sampler: Path, tmp_path: Path) -> None:
    chat = TransformersWriter(sampler, temperature=0, max_new_tokens=1).write(["路"], seed=0)[0]
    assert chat.prompt_tokens == len(["<s>", "u", " ", "路", "<s>", "a"])
    quiet = TransformersWriter(sampler, temperature=0, max_new_tokens=1, template_options={"enable_thinking": False})
    assert quiet.write(["路"], seed=0)[0].prompt_tokens == 8
    plain = TransformersWriter(build_model(tmp_path / "plain", template=None), max_new_tokens=1)
    assert plain.describe()["prompt_form"] == "plain prompt"
    assert plain.deterministic  # its generation config says nothing of sampling
    assert plain.write(["路春"], seed=0)[0].prompt_tokens == 2


@pytest.mark.usefixtures("one_thread")
def test_an_answer_ends_at_its_end_token(sampler: Path, tmp_path: Path) -> None:
    free = TransformersWriter(sampler, temperature=0, max_new_tokens=12).write(["春风"], seed=0)[0].text
    folder = build_model(tmp_path / "short")
    settings = json.loads((folder / "generation_config.json").read_text())
    settings["eos_token_id"] = [4 + CHARACTERS.index(free[0]), 2]  # its first character now ends an answer
    (folder / "generation_config.json").write_text(json.dumps(settings))
    answers = TransformersWriter(folder, max_new_tokens=12).write(["春风", "路"], seed=0)
    assert answers[0].text == free[0]
    assert answers[0].completion_tokens < 12
    assert [answer.cut_off for answer in answers] == [answer.completion_tokens == 12 for answer in answers]
    assert answers == [TransformersWriter(folder, max_new_tokens=12).write([it], seed=0)[0] for it in ("春风", "路")]


@pytest.mark.usefixtures("one_thread")
def test_a_model_without_a_pad_token_still_writes_batches(sampler: Path, tmp_path: Path) -> None:
    folder = build_model(tmp_path / "unpadded", do_sample=True, temperature=0.9, top_k=20)
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({key: value for key, value in settings.items() if key != "pad_token"}))
    writer = TransformersWriter(folder, max_new_tokens=8)
    assert writer.write(PROMPTS, seed=3) == TransformersWriter(sampler, max_new_tokens=8).write(PROMPTS, seed=3)


@pytest.mark.usefixtures("one_thread")
def test_weights_go_and_come_again(sampler: Path) -> None:
    writer = TransformersWriter(sampler, max_new_tokens=8)
    first = writer.write(PROMPTS, seed=0)
    writer.close()
    assert writer.write(PROMPTS, seed=0) == first


def test_models_that_are_not_there(sampler: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailableError, match="hf download nobody/no-such-model"):
        TransformersWriter("nobody/no-such-model")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelUnavailableError, match="cannot be loaded"):
        TransformersWriter(tmp_path / "empty")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "config.json").write_text('{"model_type": "no_such_type"}')
    with pytest.raises(ModelUnavailableError, match="cannot be loaded"):
        TransformersWriter(tmp_path / "odd")


def test_missing_and_damaged_weights(tmp_path: Path) -> None:
    folder = build_model(tmp_path / "cut")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:2000])
    writer = TransformersWriter(folder)
    with pytest.raises(ModelUnavailableError, match="cannot be loaded"):
        writer.write(["a"], seed=0)
    weights.unlink()
    with pytest.raises(ModelUnavailableError, match="cannot be loaded"):
        writer.write(["a"], seed=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -1}, "temperature must be at least 0"),
        ({"temperature": "hot"}, "temperature must be a number or None, got .hot."),
        ({"temperature": float("nan")}, "temperature must be finite"),
        ({"top_p": 0}, "top_p must lie above 0"),
        ({"max_new_tokens": 0}, "at least 1 token"),
        ({"batch_size": 0}, "batch size must be at least 1"),
        ({"dtype": "int8"}, "dtype must be auto or one of"),
        ({"dtype": "nonsense"}, "dtype must be auto or one of"),
        ({"device": "abacus"}, "torch has no device"),
        ({"name": ""}, "needs a name"),
    ],
)
def test_options_out_of_range(sampler: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        TransformersWriter(sampler, **options)


@pytest.mark.usefixtures("one_thread")
def test_a_prompt_that_leaves_no_room(sampler: Path) -> None:
    with pytest.raises(InvalidInputError, match="96"):
        TransformersWriter(sampler, max_new_tokens=91).write(["路"], seed=0)


# ---- endpoint

KEY = "sk-secret-4711"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for variable in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("SECRET_OF_A_TEST", KEY)
    running = Server()
    yield running
    running.close()


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def writer(server: Server, waits: list[float]) -> EndpointWriter:
    return EndpointWriter(
        server.url, "lab/poet-1", api_key_env="SECRET_OF_A_TEST", retries=3, sleep=waits.append, timeout_sec=5
    )


def test_an_endpoint_answers(server: Server, writer: EndpointWriter, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server.answers((200, completion("春风 PROMPT", {"prompt_tokens": 12, "completion_tokens": 5})))
    assert isinstance(writer, LyricWriter)
    assert writer.name == "poet-1"
    assert writer.write(["甲", "乙"], seed=9) == [Written("春风 甲", 12, 5), Written("春风 乙", 12, 5)]
    request = server.requests[0]
    assert request["path"] == "/v1/chat/completions"
    assert request["key"] == f"Bearer {KEY}"
    assert request["body"] == {
        "model": "lab/poet-1",
        "messages": [{"role": "user", "content": "甲"}],
        "max_tokens": 2048,
        "seed": 9,
    }
    assert KEY not in caplog.text
    assert KEY not in json.dumps(writer.describe())
    assert KEY not in repr(writer)


def test_decoding_and_further_fields_are_sent(server: Server) -> None:
    server.answers((200, completion("x")))
    options = {"max_completion_tokens": 7, "max_tokens": None, "chat_template_kwargs": {"enable_thinking": False}}
    writer = EndpointWriter(server.url + "/v1/", "m", temperature=0, top_p=0.5, options=options)
    assert writer.deterministic
    assert writer.write(["a"], seed=9) == [Written("x", None, None)]  # no usage: not known
    body = server.requests[0]["body"]
    assert {key: body[key] for key in body if key not in {"model", "messages"}} == {
        "max_completion_tokens": 7,
        "chat_template_kwargs": {"enable_thinking": False},
        "temperature": 0,
        "top_p": 0.5,
    }
    assert server.requests[0]["key"] is None
    assert writer.describe()["request"]["top_p"] == 0.5


def test_busy_servers_are_asked_again_after_the_pause_that_they_ask_for(
    server: Server, writer: EndpointWriter, waits: list[float]
) -> None:
    later = email.utils.format_datetime(dt.datetime.now(dt.UTC) + dt.timedelta(seconds=500), usegmt=True)
    server.answers(
        (429, "busy", {"Retry-After": "7"}),
        (429, "busy", {"Retry-After": later}),
        (503, "starting"),
        (200, completion("x")),
    )
    assert writer.write(["a"], seed=0)[0].text == "x"
    assert waits[0] == 7
    assert 200 < waits[1] <= 500  # however long this machine took to get here
    assert waits[2] == 4  # the third pause of our own: 1, 2, 4


@pytest.mark.parametrize(("header", "expected"), [("-3", 0.0), ("nan", 1.0), ("soon", 1.0), ("1e9", 600.0)])
def test_odd_pauses(server: Server, writer: EndpointWriter, waits: list[float], header: str, expected: float) -> None:
    server.answers((429, "busy", {"Retry-After": header}), (200, completion("x")))
    writer.write(["a"], seed=0)
    assert waits == [expected]


def test_a_server_that_stays_broken(server: Server, writer: EndpointWriter, waits: list[float]) -> None:
    server.answers((500, f"no\nluck with {KEY}"))  # which is shown without the key
    with pytest.raises(BackendError, match=r"error, 4 times \(status 500: no luck with \*\*\*\)"):
        writer.write(["a"], seed=0)
    assert waits == [1, 2, 4]
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        ((200, "<html>"), BackendError, "something other than a chat completion"),
        ((200, "[]"), BackendError, "something other than a chat completion"),
        ((200, '{"choices": []}'), BackendError, "something other than a chat completion"),
        ((200, completion(None)), BackendError, "the content is NoneType, not a text"),
        ((200, completion("x", [1])), BackendError, "something other than a chat completion"),  # type: ignore[arg-type]
        ((200, "[" * 100_000), BackendError, "something other than a chat completion"),
        ((400, '{"error": "too long"}'), BackendError, "status 400.*too long"),
        ((302, ""), BackendError, "give the final address"),
        ((401, f"wrong key {KEY}"), ModelUnavailableError, r"refused the key in \$SECRET_OF_A_TEST \(status 401\)$"),
        ((404, "no model"), ModelUnavailableError, "has no model 'lab/poet-1'"),
    ],
)
def test_answers_that_are_no_lyrics(
    server: Server, writer: EndpointWriter, answer: tuple[int, str], error: type[Exception], message: str
) -> None:
    server.answers((*answer, {"Location": "http://127.0.0.1:9/"}))
    with pytest.raises(error, match=message) as caught:
        writer.write(["a"], seed=0)
    assert len(server.requests) == 1  # asking again would not help
    assert KEY not in str(caught.value)


@pytest.mark.slow
def test_why_the_hubs_own_client_does_not_do(server: Server) -> None:
    """If this fails, `InferenceClient` has learnt to keep the promises of `_endpoint`, which could then stand on it."""
    elsewhere = Server()
    elsewhere.answers((200, completion("x")))
    server.answers((307, "", {"Location": f"{elsewhere.url}/v1/chat/completions"}), (429, "busy"))
    code = (
        "import sys\n"
        "from huggingface_hub import InferenceClient\n"
        "from huggingface_hub.errors import HfHubHTTPError\n"
        "client = InferenceClient(base_url=sys.argv[1], timeout=20)\n"
        "for _ in range(2):\n"
        "    try:\n"
        "        client.chat_completion([{'role': 'user', 'content': 'a prompt'}], model='m')\n"
        "    except HfHubHTTPError as error:\n"
        "        print(error.response.status_code)\n"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "0", "HF_TOKEN": "hf_of_this_machine"}
    try:
        run = subprocess.run(
            [sys.executable, "-c", code, server.url], capture_output=True, text=True, env=environment, check=True
        )
        assert run.stdout.split() == ["429"]  # asked once, not again
        assert [request["key"] for request in server.requests] == ["Bearer hf_of_this_machine"] * 2  # nobody gave it
        assert elsewhere.requests[0]["body"]["messages"][0]["content"] == "a prompt"
    finally:
        elsewhere.close()


def test_a_refused_connection(waits: list[float], server: Server) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    writer = EndpointWriter(url, "m", retries=2, sleep=waits.append)
    with pytest.raises(ModelUnavailableError, match="cannot be reached"):
        writer.write(["a"], seed=0)
    assert waits == [1, 2]


def test_a_server_that_is_silent(server: Server) -> None:
    release = threading.Event()
    server.hold = lambda: release.wait(5) and None
    server.answers((200, completion("x")))
    writer = EndpointWriter(server.url, "m", retries=1, sleep=lambda _: None, timeout_sec=0.1)
    with pytest.raises(BackendError, match=r"0.1"):
        writer.write(["a"], seed=0)
    release.set()


def test_threads_share_one_client_and_a_call_makes_none(server: Server) -> None:
    barrier = threading.Barrier(2, timeout=30)
    server.answers((200, completion("PROMPT")))
    writer = EndpointWriter(server.url, "m", concurrency=2)
    assert [answer.text for answer in writer.write(list("ab"), seed=0)] == list("ab")
    assert server.most_at_once == 1
    server.hold = lambda: barrier.wait() and None  # two must be there together, or this breaks
    first = writer._client()
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda prompt: writer.write([prompt], seed=0)[0].text, "cdef"))
    assert answers == list("cdef")
    assert server.most_at_once == 2
    assert writer._client() is first
    writer.close()
    assert first.is_closed
    server.hold = lambda: None
    assert writer.write(["g"], seed=0)[0].text == "g"  # it is opened again
    writer.close()


@pytest.mark.parametrize(
    ("given", "options", "sent", "deterministic"),
    [
        ({}, {}, {"max_tokens": 2048, "seed": 9}, False),
        ({}, {"seed": None}, {"max_tokens": 2048}, False),
        ({}, {"seed": 4}, {"max_tokens": 2048, "seed": 4}, True),
        ({}, {"temperature": 0}, {"max_tokens": 2048, "temperature": 0}, True),
        ({"temperature": 0}, {"temperature": 0.5}, {"max_tokens": 2048, "temperature": 0.5, "seed": 9}, False),
        ({"temperature": 0}, {"temperature": None}, {"max_tokens": 2048, "seed": 9}, False),
    ],
)
def test_the_receipt_tells_what_is_sent(
    server: Server, given: dict[str, Any], options: dict[str, Any], sent: dict[str, Any], deterministic: bool
) -> None:
    server.answers((200, completion("x")))
    writer = EndpointWriter(server.url, "m", options=options, **given)
    assert writer.deterministic is deterministic
    writer.write(["a"], seed=9)
    writer.close()
    body = server.requests[0]["body"]
    assert {key: body[key] for key in body if key not in {"model", "messages"}} == sent
    receipt = writer.describe()
    assert receipt["sends_seed"] is (sent.get("seed") == 9)
    assert receipt["request"] == {key: value for key, value in sent.items() if value != 9}


@pytest.mark.parametrize("field", ["messages", "model", "stream", "n"])
def test_fields_that_are_ours_are_no_options(field: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{field} cannot be an option"):
        EndpointWriter("http://localhost", "m", options={field: None})


@pytest.mark.parametrize(("reason", "cut_off"), [("length", True), ("stop", False), (None, None)])
def test_what_is_cut_off_is_what_the_server_says(server: Server, reason: str | None, cut_off: bool | None) -> None:
    content = json.loads(completion("x", {"prompt_tokens": 1, "completion_tokens": 2048}))
    content["choices"][0]["finish_reason"] = reason
    server.answers((200, json.dumps(content)))
    writer = EndpointWriter(server.url, "m")
    assert writer.write(["a"], seed=0) == [Written("x", 1, 2048, cut_off)]
    writer.close()


def test_cancelling_ends_a_pause(server: Server) -> None:
    server.answers((429, "busy", {"Retry-After": "500"}))
    writer = EndpointWriter(server.url, "m", retries=3)
    server.hold = writer.cancel  # while the first request is under way
    with pytest.raises(BackendError, match="429"):
        writer.write(["a"], seed=0)
    assert len(server.requests) == 1
    threading.Timer(0.3, writer.cancel).start()  # in the pause
    server.hold = lambda: None
    writer.close()
    with pytest.raises(BackendError, match="429"):
        writer.write(["a"], seed=0)
    assert len(server.requests) == 2
    writer.close()


def test_a_key_is_not_sent_in_the_open(server: Server) -> None:
    for url in ("http://example.org/v1", "http://10.0.0.3:8000", "http://localhost.example.org"):
        with pytest.raises(InvalidInputError, match="plain http") as caught:
            EndpointWriter(url, "m", api_key_env="SECRET_OF_A_TEST")
        assert KEY not in str(caught.value)
        EndpointWriter(url, "m", api_key_env="SECRET_OF_A_TEST", allow_http=True)
        EndpointWriter(url, "m")
    for url in ("https://example.org", "http://localhost:1", "http://127.0.0.9", "http://[::1]:8000"):
        EndpointWriter(url, "m", api_key_env="SECRET_OF_A_TEST")


def test_without_http_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(MissingBackendError, match=r"\.\[models\]"):
        EndpointWriter("http://localhost", "m")


@pytest.mark.parametrize(
    "url",
    ["", "localhost:8000", "ftp://host/v1", "file:///etc/passwd", "http://", "http://host:port/v1", "http://[::1"],
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(InvalidInputError, match=r"expected one such as|must be an http or https address"):
        EndpointWriter(url, "m")


@pytest.mark.parametrize("url", [f"http://user:{KEY}@host/v1", f"https://host/v1?key={KEY}", f"ftp://{KEY}@host/#x"])
def test_addresses_with_secrets_are_refused_and_not_quoted(url: str) -> None:
    with pytest.raises(InvalidInputError, match="environment variable") as caught:
        EndpointWriter(url, "m")
    assert KEY not in str(caught.value)


def test_addresses_are_completed() -> None:
    for url, expected in {
        "http://host": "http://host/v1/chat/completions",
        "https://host/api/v3/": "https://host/api/v3/chat/completions",
        "http://host/v1/chat/completions": "http://host/v1/chat/completions",
    }.items():
        assert EndpointWriter(url, "m").url == expected


def test_keys_that_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_KEY_HERE", raising=False)
    with pytest.raises(ModelUnavailableError, match="NO_KEY_HERE"):
        EndpointWriter("http://host", "m", api_key_env="NO_KEY_HERE")
    monkeypatch.setenv("NO_KEY_HERE", "secret\nX-Other: 1")
    with pytest.raises(ModelUnavailableError, match="characters that a key cannot have") as caught:
        EndpointWriter("http://host", "m", api_key_env="NO_KEY_HERE")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("options", [{"retries": -1}, {"concurrency": 0}, {"timeout_sec": 0}, {"temperature": -1}])
def test_endpoint_options_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        EndpointWriter("http://host", "m", **options)
