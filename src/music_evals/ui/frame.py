"""What all pages share: their frame, how they are served, receipts, code to copy, downloads and plain words for errors.

A page is built with `space`, its buttons are wired with `on_click`, and it is served with `serve` (an `app.py`) or
`launch`. Importing this module does not import Gradio.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import inspect
import json
import math
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from music_evals.csv_files import csv_text
from music_evals.errors import (
    FileTooLargeError,
    MissingBackendError,
    ModelUnavailableError,
    MusicEvalsError,
    check_extras,
)
from music_evals.ui.assets import html, script, style
from music_evals.ui.uploads import MAX_UPLOAD_BYTES
from music_evals.ui.words import ENGLISH

if TYPE_CHECKING:
    import gradio as gr

    from music_evals.ui.words import Words

__all__ = [
    "REMOVAL", "RETENTION_SEC", "Progress", "add_examples", "code_panel", "download_button", "downloads_panel",
    "edits_of", "follow", "forget_when", "friendly", "keep_file", "language_switch", "launch", "no_progress",
    "on_click", "privacy", "receipt_html", "say_error", "serve", "space", "temporary_folder", "with_progress",
    "write_downloads",
]  # fmt: skip

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

Progress = Callable[[float, str], Any]  # takes the share that is done, and the stage that begins

RETENTION_SEC = 3600
"""Uploads, downloads and the state of pages are removed once they are older, by the next sweep."""

SWEEP_SEC = 300  # between two looks for what is too old, by us and by Gradio

REMOVAL = "Files that you upload and files that are made for you are removed within 70 minutes."
"""What pages and their cards say of removal: the retention, a sweep, and five minutes to spare."""

REMOVALS = {"en": REMOVAL, "zh": "上传的文件和为您生成的文件会在 70 分钟内删除。"}
PRIVACY = {
    "en": {
        "local": "What you enter or upload stays on the machine that serves this page, in memory and in temporary "
        "files.",
        "hosted": "What you enter or upload is sent to the server of this Space, which processes it in memory and in "
        "temporary files and sends it nowhere else.",
    },
    "zh": {
        "local": "您输入或上传的内容只留在提供本页面的机器上，存放在内存和临时文件中。",
        "hosted": "您输入或上传的内容会发送到本 Space 的服务器，仅在其内存和临时文件中处理，不会再发送到别处。",
    },
}


# of the visitor's system, Chinese included: no font is fetched
FONTS = ("system-ui", "sans-serif")
MONO_FONTS = ("ui-monospace", "monospace")
SKIP = {"en": "Skip to the tool", "zh": "跳到工具"}


def privacy(language: str = ENGLISH) -> str:
    """Say where uploads go, which depends on where the page is served, and when they are removed."""
    return f"{PRIVACY[language]['hosted' if os.environ.get('SPACE_ID') else 'local']} {REMOVALS[language]}"


@contextlib.contextmanager
def space(
    title: str, intro: str, *, words: Words | None = None, max_upload_bytes: int = MAX_UPLOAD_BYTES
) -> Iterator[gr.Blocks]:
    """Open the frame of a page; what is built inside the ``with`` stands in it."""
    # The page has a link that skips to the tool for those who use a keyboard, a title, an introduction, and files that
    # are removed as `REMOVAL` says, and when the process ends.
    import gradio as gr

    os.environ.setdefault("GRADIO_TEMP_DIR", str(_workspace() / "gradio"))
    with gr.Blocks(title=title, analytics_enabled=False, delete_cache=(SWEEP_SEC, RETENTION_SEC)) as page:
        spoken = words.languages if words is not None else (ENGLISH,)
        skip = " / ".join(SKIP[language] for language in spoken)
        gr.HTML(html("skip.html", words=skip), elem_id="skip", elem_classes="me-anchor")
        gr.Markdown(f"# {title}\n\n{intro}", elem_id="intro")
        gr.HTML('<span id="tool" tabindex="-1"></span>', elem_classes="me-anchor")
        yield page
    page.max_upload_bytes = max_upload_bytes
    page.validate_inputs = functools.partial(_validate_inputs, page.validate_inputs)


def _validate_inputs(validate: Callable[[Any, Any], None], event: Any, inputs: Any) -> None:
    """Refuse addresses in place of files, which Gradio would fetch for a caller of the API; then validate as ever."""
    if any(
        (isinstance(path, str) and re.match(r"\s*[a-z][a-z0-9+.-]*:", path, flags=re.IGNORECASE) is not None)
        for path in _paths(inputs)
    ):
        import gradio as gr

        raise gr.Error("this page takes uploaded files and no addresses")
    validate(event, inputs)


def _paths(value: Any) -> Iterator[Any]:
    """Yield what stands under the key ``path`` at any depth."""
    if isinstance(value, Mapping):
        if "path" in value:
            yield value["path"]
        yield from (path for part in value.values() for path in _paths(part))
    elif isinstance(value, list | tuple):
        yield from (path for part in value for path in _paths(part))


def serve(build_demo: Callable[[], gr.Blocks], app_file: str | os.PathLike[str]) -> None:
    """Build a page and serve it, as a script; what is missing for it is one line on stderr and exit code 1."""
    requirements = Path(app_file).with_name("requirements.txt").read_text(encoding="utf-8")
    try:
        for extras in re.findall(r"^music[_-]evals\[([\w,]+)\]", requirements, flags=re.MULTILINE):
            check_extras(extras.split(","), "this page")
        page = build_demo()
    except MusicEvalsError as error:
        sys.exit(f"error: {error}")
    launch(page)


def launch(page: gr.Blocks, **options: Any) -> Any:
    """Serve a page: uploads bounded, no folder of the machine shown, no statistics, no public link."""
    import gradio as gr

    settings: dict[str, Any] = {
        "max_file_size": getattr(page, "max_upload_bytes", MAX_UPLOAD_BYTES),
        "allowed_paths": [],
        "theme": gr.themes.Soft(font=FONTS, font_mono=MONO_FONTS),
        "css": style("frame", "bars"),
        "head": f"<script>{script('typed')}\nmusicEvals.typed.start();</script>",
        "show_error": False,  # a named error is shown as gr.Error; what is a bug tells visitors nothing of the machine
        "share": False,
        "run_history": False,
        "footer_links": ["api", "settings"],
        "ssr_mode": False,
    }
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        # temporary files are removed on a request to stop
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    return page.launch(**settings | options)


def friendly(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Show an error that the library names as plain words on the page; any other is a bug and stays one."""
    # Generators are wrapped as generators. Gradio renders messages as HTML, and ours quote typed text and file names:
    # they are escaped, and shown without the folder of the upload.
    if not inspect.isgeneratorfunction(function):
        return _plain_words()(function)

    @functools.wraps(function)
    def steps(*args: Arguments.args, **options: Arguments.kwargs) -> Any:
        with _plain_words():
            yield from function(*args, **options)

    return steps


@contextlib.contextmanager
def _plain_words() -> Iterator[None]:
    try:
        yield
    except MusicEvalsError as error:
        import gradio as gr

        raise gr.Error(escape(say_error(error), quote=False), print_exception=False) from error


def say_error(error: MusicEvalsError) -> str:
    """Return what visitors read of an error: what of their input was refused, and what they can do here."""
    # An error whose remedy lies in code (a bound to raise, a package to install) is put into words of its own from its
    # facts; every other message is for all readers. Visitors know their files by name: folders are left out.
    if isinstance(error, FileTooLargeError) and error.limit is not None:
        name = error.name or "what you gave"
        size = "" if error.size is None else f" ({_amount(error.size, error.unit)})"
        most = _amount(error.limit, error.unit)
        return f"{name} is too long or too large{size}: at most {most} are taken here. Upload a shorter excerpt."
    if isinstance(error, MissingBackendError) and error.feature:
        return f"{error.feature}: not available on this page, since its server lacks the package {error.package}."
    if isinstance(error, ModelUnavailableError):
        return "The model cannot be loaded on this page now. Choose another one, or come back later."
    message = str(error)
    for folder in {tempfile.gettempdir(), os.environ.get("GRADIO_TEMP_DIR", tempfile.gettempdir())}:
        message = re.sub(re.escape(folder) + r"(?:/[^/\s:]+)*/", "", message)
    return message


def _amount(number: float, unit: str) -> str:
    """Return an amount as visitors read it: minutes and seconds, MiB, or a number of things."""
    if unit == "seconds" and number >= 60:
        minutes, seconds = divmod(round(number), 60)
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    if unit == "bytes":
        return f"{number / 2**20:.1f} MiB".replace(".0 ", " ")
    return f"{number:,.10g} {unit}"


def with_progress(function: Callable[..., Result]) -> Callable[..., Result]:
    """Give a function's parameter ``progress`` the progress bar of the page; without one, return it as it is."""
    # The function calls ``progress(0.3, "Chords")``. A test passes a function of its own, or nothing where the
    # parameter has a default.
    signature = inspect.signature(function)
    if "progress" not in signature.parameters:
        return function
    import gradio as gr

    parameters = dict(signature.parameters)
    bar = parameters.pop("progress").replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD, default=gr.Progress())
    shown = signature.replace(parameters=[*parameters.values(), bar])

    @functools.wraps(function)
    def answer(*args: Any) -> Any:
        return function(*args[:-1], progress=args[-1])

    @functools.wraps(function)
    def steps(*args: Any) -> Any:
        yield from answer(*args)

    wrapped: Any = steps if inspect.isgeneratorfunction(function) else answer
    wrapped.__signature__ = shown
    return wrapped  # type: ignore[no-any-return]


def no_progress(_share: float, _stage: str) -> None:
    """Show no progress; for calls without a page."""


def on_click(
    button: Any,
    function: Callable[..., Any],
    inputs: Sequence[Any],
    outputs: Sequence[Any] | Any,
    *,
    name: str,
    cancel: Any = None,
    cancelled: tuple[Callable[[str], str], Any] | None = None,
    **options: Any,
) -> Any:
    """Wire a button: friendly errors, a progress bar, a public API name, one call at a time, and a cancel button.

    `cancelled` rewrites the text of a component once the call is cancelled, after all that the call still says.
    """
    settings: dict[str, Any] = {
        "api_name": name,
        "api_visibility": "public",
        "concurrency_id": "judge",
        "concurrency_limit": 1,  # catching warnings is global to the process
    }
    event = button.click(friendly(with_progress(function)), list(inputs), outputs, **settings | options)
    if cancel is not None:
        stopped = cancel.click(None, cancels=[event], api_visibility="private")
        if cancelled is not None:
            rewrite, text = cancelled
            stopped.then(rewrite, text, text, api_visibility="private", queue=False)
    return event


def language_switch(words: Words, parts: Sequence[tuple[Any, Mapping[str, str]]], **options: Any) -> gr.Radio:
    """Add a switch of languages that rewrites properties of components."""
    import gradio as gr

    settings: dict[str, Any] = {"value": words.languages[0], "label": "Language / 语言", "elem_id": "language"}
    switch = gr.Radio(words.choices, **settings | options)

    def say(language: str) -> list[Any]:
        t = words(language)
        return [gr.update(**{name: t(key) for name, key in keys.items()}) for _, keys in parts]

    switch.change(say, switch, [part for part, _ in parts], api_visibility="private", queue=False)
    return switch


def receipt_html(receipt: Mapping[str, Any]) -> str:
    """Return a receipt as an HTML list of names and values, escaped; mappings inside become lists inside.

    Examples
    --------
    >>> print(receipt_html({"variant": "<b>"}))
    <dl class="me-receipt"><dt>variant</dt><dd>&lt;b&gt;</dd></dl>
    """
    return html("receipt.html", receipt=receipt).strip()


def code_panel(label: str = "Copy as code") -> tuple[gr.Code, gr.Code]:
    """Add a panel with the Python (``#code_python``) and the command (``#code_shell``) that give the same result."""
    # Both have a copy button; a callback fills them.
    import gradio as gr

    with gr.Accordion(label, open=False, elem_id="code"):
        python = gr.Code(language="python", label="Python", interactive=False, elem_id="code_python", wrap_lines=True)
        shell = gr.Code(
            language="shell", label="Command line", interactive=False, elem_id="code_shell", wrap_lines=True
        )
    return python, shell


def downloads_panel(*names: str) -> list[gr.DownloadButton]:
    """Add the buttons for JSON (``#download_json``) and CSV (``#download_csv``), and one for each further name."""
    # `write_downloads` fills them
    import gradio as gr

    with gr.Row():
        return [download_button(name, f"download_{name.split()[0].lower()}") for name in ("JSON", "CSV", *names)]


def download_button(label: str, elem_id: str) -> gr.DownloadButton:
    """Add a button for a file; it is disabled until there is one."""
    import gradio as gr

    button = gr.DownloadButton(label, elem_id=elem_id, size="sm", interactive=False)
    quiet: dict[str, Any] = {"api_visibility": "private", "queue": False, "show_progress": "hidden"}
    button.change(lambda path: gr.update(interactive=path is not None), button, button, **quiet)
    return button


def add_examples(rows: Sequence[Sequence[str]], fields: Sequence[gr.File], labels: Sequence[str], label: str) -> Any:
    """Add files to try the page with, a row each: pressing one puts its files into the fields."""
    import gradio as gr

    for row in rows:
        for field, path in zip(fields, row, strict=True):
            keep_file(field, path)
    return gr.Examples(
        [list(row) for row in rows],
        list(fields),
        example_labels=list(labels),
        label=label,
        cache_examples=False,
        api_name="example",
        api_visibility="undocumented",
    )


def keep_file(field: gr.File, path: str) -> None:
    """Let a field's copy of a file of ours live as long as the page, while what visitors upload goes."""
    from gradio.processing_utils import move_files_to_cache

    move_files_to_cache(field.postprocess(path), field, postprocess=True, keep_in_cache=True)


def forget_when(changed: Sequence[Any], outputs: Sequence[Any], *, run: Any = None) -> None:
    """Empty outputs when inputs change: no result stays beside inputs that it is not of."""
    import gradio as gr

    first = [{"__type__": "update", "value": component.value} for component in outputs]
    cancels = [] if run is None else [run]
    # in the browser alone: what a visitor does next is not overtaken by an answer of the server
    empty = f"() => ({json.dumps(first)})"
    gr.on(changed, None, None, list(outputs), js=empty, cancels=cancels, api_visibility="private")


def follow(changed: Sequence[Any], function: Callable[..., Any], inputs: Any, outputs: Any, **options: Any) -> Any:
    """Call the server when inputs change; of the changes while it works, only the last is sent."""
    # Gradio handles what belongs to an event one after the other, waits for each answer, and begins anew where a change
    # came meanwhile: `forget_when` would come late, and again, and cancel a run that was started in between. What
    # follows an event is no part of it.
    import gradio as gr

    settings: dict[str, Any] = {"api_visibility": "private", "trigger_mode": "always_last"}
    event = gr.on(changed, None, api_visibility="private")
    return event.then(friendly(function), inputs, outputs, **settings | options)


def edits_of(inputs: Sequence[Any]) -> list[Any]:
    """Return the events by which visitors change inputs: files that come and go, and what is typed, moved or drawn."""
    names = ("upload", "clear", "delete", "input")
    return [
        getattr(component, name)
        for component in inputs
        for name in (("change",) if type(component).__name__ == "HTML" else names)
        if hasattr(component, name)
    ]


def write_downloads(
    results: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], *, name: str = "results"
) -> tuple[str, str]:
    """Write results as JSON and rows as CSV into a `temporary_folder`."""
    target = temporary_folder()
    json_path, csv_path = target / f"{name}.json", target / f"{name}.csv"
    text = json.dumps(_plain(results), ensure_ascii=False, indent=2, allow_nan=False)
    json_path.write_text(text + "\n", encoding="utf-8")
    columns = dict.fromkeys(name for row in rows for name in row)
    csv_path.write_text(csv_text(columns, rows, line_end="\r\n"), encoding="utf-8", newline="")
    return str(json_path), str(csv_path)


def temporary_folder() -> Path:
    """Return a new empty folder that is removed as `REMOVAL` says, and with the process."""
    root = _workspace() / "kept"
    if not root.exists():  # swept from now on, as long as the process lives
        root.mkdir(exist_ok=True)
        threading.Thread(target=_keep_sweeping, args=(root, SWEEP_SEC), name="sweep", daemon=True).start()
    return Path(tempfile.mkdtemp(dir=root))


def _plain(value: Any) -> Any:
    """Return a value as JSON can say it: numpy unpacked, what is not finite null."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if hasattr(value, "tolist"):  # numpy arrays and numbers
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@functools.cache
def _workspace() -> Path:
    """Return the folder of this process for temporary files; it is removed when the process ends."""
    folder = tempfile.mkdtemp(prefix="music_evals_page_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder).resolve()


def _keep_sweeping(folder: Path, every_sec: float) -> None:
    """Sweep a folder again and again until it is gone."""
    while folder.is_dir():
        with contextlib.suppress(OSError):  # it goes with the process, perhaps at this moment
            for path in folder.iterdir():
                if time.time() - path.stat().st_mtime > RETENTION_SEC:
                    shutil.rmtree(path, ignore_errors=True)
        time.sleep(every_sec)
