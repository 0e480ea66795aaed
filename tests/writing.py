"""What tests of lyric writing stand on: a tiny language model, a server on loopback, songs."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CHARACTERS = "abcdefghij 春风吹过青石板路"
TEMPLATE = (
    "{% for message in messages %}<s>{{ message['role'][0] }} {{ message['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<s>a{% endif %}"
    "{% if enable_thinking is defined and not enable_thinking %} b{% endif %}"
)


def build_model(folder: Path, *, template: str | None = TEMPLATE, room: int = 96, **generation: Any) -> Path:
    """Save a random language model of a few thousand weights, with one token a character."""
    import torch
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    vocabulary = {token: number for number, token in enumerate(["<pad>", "<s>", "</s>", "<unk>", *CHARACTERS])}
    special = dict(zip(["pad_token", "bos_token", "eos_token", "unk_token"], vocabulary, strict=False))
    core = Tokenizer(models.WordLevel(vocabulary, unk_token=special["unk_token"]))
    core.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    core.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, **special)
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=room, bos_token_id=1, eos_token_id=2, pad_token_id=0,
        initializer_range=0.5,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    model.generation_config = GenerationConfig(bos_token_id=1, eos_token_id=2, pad_token_id=0, **generation)
    model.save_pretrained(folder)
    return folder


class Server:
    """A server on loopback that answers by a script: the last entry is repeated."""

    def __init__(self) -> None:
        self.script: list[tuple[int, dict[str, str], bytes]] = []
        self.requests: list[dict[str, Any]] = []
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self.hold: Callable[[], None] = lambda: None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer._lock:
                    outer._at_once += 1
                    outer.most_at_once = max(outer.most_at_once, outer._at_once)
                    outer.requests.append({"path": self.path, "key": self.headers.get("Authorization"), "body": body})
                    status, headers, content = outer.script.pop(0) if len(outer.script) > 1 else outer.script[0]
                outer.hold()
                with outer._lock:
                    outer._at_once -= 1
                content = content.replace(b"PROMPT", body["messages"][0]["content"].encode())
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                with contextlib.suppress(OSError):  # the client may have given up
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def answers(self, *script: tuple[int, str] | tuple[int, str, dict[str, str]]) -> None:
        self.script = [(entry[0], entry[2] if len(entry) > 2 else {}, entry[1].encode()) for entry in script]

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def completion(text: str | None, usage: dict[str, int] | None = None) -> str:
    content: dict[str, Any] = {"choices": [{"message": {"role": "assistant", "content": text}}]}
    return json.dumps({**content, **({} if usage is None else {"usage": usage})})


POEMS = {
    "spring": ("春天的早晨", ("春眠不觉晓", "处处闻啼鸟", "夜来风雨声", "花落知多少"), "RRcc"),
    "moon": ("月光下想家", ("床前明月光", "疑是地上霜", "举头望明月", "低头思故乡"), "RRcc"),
    "heron": ("登楼远望", ("白日依山尽", "黄河入海流", "欲穷千里目", "更上一层楼"), "cccc"),
}
"""Id -> theme, lines of an old poem (two a section), and how each ends."""


def poem_text(item: str) -> str:
    """Return a poem as a model that does all right would write it."""
    lines = POEMS[item][1]
    return "\n".join(["(verse)", *lines[:2], "(chorus)", *lines[2:]])


def write_songs(path: Path, **themes: str) -> Path:
    """Write the poems as songs, one a line; `themes` are those of professionals, by id, where they are others."""
    rows = []
    for item, (theme, lines, ends) in POEMS.items():
        rhyme = [f"{'c' * (len(line) - 1)}{end}" for line, end in zip(lines, ends, strict=True)]
        structure = [
            {"label": f"{kind}1", "type": kind, "lines": lines[at : at + 2], "rhyme": rhyme[at : at + 2]}
            for kind, at in (("verse", 0), ("chorus", 2))
        ]
        groups = {
            group: {"overall_text": "", "dimensions": {"lyric_themes": {"tags": [], "text": text}}}
            for group, text in (("professional", themes.get(item, theme)), ("amateur", f"{theme}！"))
        }
        rows.append({"id": item, "title": item, "artist": [], "structure": structure, **groups})
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path
