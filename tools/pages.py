"""List the controls of each page of Gradio, and the fields of each page of the platform and of the studies.

What scripts add to a page is not here: tests of `tests/browser` hold it.
"""

from __future__ import annotations

import contextlib
import html.parser
import importlib.util
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx2

__all__ = ["Fields", "list_controls"]


def list_controls(root: Path, scratch: Path, command: Callable[[Sequence[str], Path], str]) -> dict[str, Any]:
    """Return control or field -> its choices, of all pages; `command` runs a verb in a folder."""
    apps = [*sorted(root.glob("spaces/*/app.py")), *sorted(root.glob("metrics/*/app.py"))]
    lines: dict[str, Any] = {}
    for app in apps:
        if not app.with_name("Dockerfile").exists():
            _gradio(app, f"{app.parent.parent.name}/{app.parent.name}", lines)
    _platform(scratch, lines)
    _studies(scratch, lines, command)
    return lines


def _gradio(app: Path, page: str, lines: dict[str, Any]) -> None:
    """Add label and kind of each control of a page of Gradio, with choices or bounds, and its public functions."""
    spec = importlib.util.spec_from_file_location(f"app_{app.parent.name}", app)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{app} is no script")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    config = module.build_demo().get_config_file()
    for component in config["components"]:
        props, kind = component["props"], component["type"]
        label = props.get("value") if kind.endswith("button") else props.get("label")
        if isinstance(label, str) and label:
            choices = [
                choice[-1] if isinstance(choice, list | tuple) else choice for choice in props.get("choices") or []
            ]
            bounds = [props[name] for name in ("minimum", "maximum") if isinstance(props.get(name), int | float)]
            _add(lines, f"{page}: {label} ({kind})", choices or bounds)
    for function in config["dependencies"]:
        if function.get("api_visibility", "public") == "public" and function["api_name"]:
            _add(lines, f"{page}: api {function['api_name']}", [len(function["inputs"]), len(function["outputs"])])


def _add(lines: dict[str, Any], name: str, value: Any) -> None:
    """Add a value under a name, numbered from the second on."""
    same = sum(key == name or key.startswith(f"{name} #") for key in lines)
    lines[f"{name} #{same + 1}" if same else name] = value


class Fields(html.parser.HTMLParser):
    """The forms of a page: their fields with kind and choices; and the addresses that it links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.form, self.select = "no form", ""
        self.fields: dict[str, set[str]] = {}
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a form, a field, a choice or a link."""
        values = {name: value or "" for name, value in attrs}
        name = numberless(values.get("name") or values.get("id", ""))
        if tag == "form":
            self.form = f"{values.get('method', 'get')} {numberless(values.get('action', ''))}"
        elif tag == "a":
            self.links.add(values.get("href", ""))
        elif tag in {"input", "textarea", "select", "button", "audio"}:
            kind = values.get("type", "text") if tag == "input" else tag
            self.select = f"{self.form}: {name} ({kind})"
            choices = self.fields.setdefault(self.select, set())
            if kind in {"radio", "checkbox", "button"}:
                choices.add(values.get("value", ""))
        elif tag == "option" and self.select:
            self.fields[self.select].add(values.get("value", ""))

    def handle_endtag(self, tag: str) -> None:
        """Note the end of a form."""
        self.form = "no form" if tag == "form" else self.form


def numberless(text: str) -> str:
    """Return a name or an address without its numbers and its secrets, so that rows of one kind are one."""
    return re.sub(r"\d+", "N", re.sub(r"(?<=/)[\w-]{20,}", "X", text.partition("?")[0]))


class Visitor:
    """A browser without scripts, that keeps cookies."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = httpx2.Client(base_url=url, timeout=60, follow_redirects=True, trust_env=False)

    def page(self, address: str, form: Mapping[str, str] | None = None) -> str:
        """Return the text of a page, or nothing where it is no page, is missing or is not for this visitor."""
        headers = {"Origin": self.url}
        if form is None:
            answer = self.client.get(address, headers=headers)
        else:
            answer = self.client.post(address, data=dict(form), headers=headers)
        return answer.text if answer.is_success and "html" in answer.headers.get("content-type", "") else ""

    def press(self, page: str, action: str) -> str:
        """Send the form of a page that goes to `action`, as it is."""
        form = re.search(rf'<form[^>]*action="{action}".*?</form>', page, re.DOTALL)
        hidden = re.findall(r'<input[^>]*name="([^"]*)"[^>]*value="([^"]*)"', form[0]) if form else []
        return self.page(action, dict(hidden)) if form else ""

    def walk(self, who: str, lines: dict[str, Any]) -> None:
        """Add the fields of all pages that links lead to, of three pages of a kind at most."""
        waiting, visits, fields = ["/"], {"/": 1}, dict[str, set[str]]()
        while waiting:
            address = waiting.pop(0)
            page = Fields(self.page(address))
            for name, choices in page.fields.items():
                if address != "/" and re.search(r" /(sign-out|language): ", name):
                    continue  # on every page
                fields.setdefault(f"{who} {numberless(address)}: {name}", set()).update(choices)
            for link in sorted(page.links):
                kind = numberless(link)
                if re.match(r"/(?!/)", link) and link not in visits and visits.get(kind, 0) < 3:
                    visits[kind], visits[link] = visits.get(kind, 0) + 1, 1
                    waiting.append(link)
        lines.update({name: sorted(set(map(numberless, choices))) for name, choices in fields.items()})


@contextlib.contextmanager
def serving(words: Sequence[str], folder: Path, **variables: str) -> Iterator[str]:
    """Serve pages by a verb, in a process of its own, and yield their address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server_command = [sys.executable, "-m", "music_evals", *words, "--port", str(port)]
    with subprocess.Popen(server_command, cwd=folder, env=os.environ | variables, stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(6000):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                if server.poll() is not None:
                    raise SystemExit(f"{' '.join(words)} ended with {server.returncode}")
                time.sleep(0.1)
            else:
                raise SystemExit(f"{' '.join(words)} serves nothing after ten minutes")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def _platform(scratch: Path, lines: dict[str, Any]) -> None:
    """Add the fields that each role has on the annotation platform, in its demo study."""
    password = "a password of nobody"  # noqa: S105
    with serving(["caimap", "serve", "study", "--demo"], scratch, MUSIC_EVALS_CAIMAP_PASSWORD=password) as url:
        for who in ("admin", "inspector1", "professional1", "amateur1"):
            visitor = Visitor(url)
            Visitor(url).walk("caimap/visitor", lines)
            visitor.page("/sign-in", {"name": who, "password": password})
            for page, action in (("/work", "/work/next"), ("/training", "/training/next")):
                for name, choices in Fields(visitor.press(visitor.page(page), action)).fields.items():
                    lines[f"caimap/{who.rstrip('1')} after {action}: {name}"] = sorted(map(numberless, choices))
            visitor.walk(f"caimap/{who.rstrip('1')}", lines)


def _studies(scratch: Path, lines: dict[str, Any], command: Callable[[Sequence[str], Path], str]) -> None:
    """Add the fields of the organiser's pages, and what the pages of participants are made from."""
    secret = "a secret of nobody at all"  # noqa: S105
    command(["examples"], scratch)
    pair = "examples/originals/song_rock.ogg,examples/faster/song_rock.ogg"
    (scratch / "pairs.csv").write_text(f"item_id,system,reference,estimate\nrock,faster,{pair}\n", encoding="utf-8")
    build = "listening-test build pairs.csv --lengths cut --contact Ada --listeners 2 --type"
    kinds = {
        "rating": f"{build} rating --questions LQ1,harmony",
        "mushra": f"{build} mushra",
        "editing": "editing-test demo",
    }
    for kind, step in kinds.items():
        folder = scratch / f"test_{kind}"
        command([*shlex.split(step), "--out", folder.name], scratch)
        verb = step.partition(" ")[0]
        with serving([verb, "serve", folder.name], scratch, MUSIC_EVALS_STUDY_SECRET=secret) as url:
            visitor = Visitor(url)
            entry = visitor.page("/organiser")
            inside = visitor.page("/organiser/enter", {"secret": secret})
            participant = visitor.page("/index.html")
            for name, text in (("entry", entry), ("organiser", inside), ("participant", participant)):
                for field, choices in Fields(text).fields.items():
                    lines[f"{kind} study, {name}: {field}"] = sorted(choices)
        script = re.search(r'id="study">(.*?)</script>', participant, re.DOTALL)
        settings = json.loads(script[1]) if script else {}
        for name, part in (("study", settings), ("settings", settings.get("settings", {}))):
            lines[f"{kind} study, participant: {name}"] = sorted(part)
