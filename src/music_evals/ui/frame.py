"""What all pages share: their frame, how they are served, receipts, code to copy, downloads and plain words for errors.

A page is built with `space`, its buttons are wired with `on_click`, and it is served with `serve` (an `app.py`) or
`launch`. Importing this module does not import Gradio.
"""

from __future__ import annotations

import atexit
import contextlib
import csv
import functools
import html
import inspect
import io
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
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from music_evals.errors import MusicEvalsError, check_extras
from music_evals.ui.uploads import MAX_UPLOAD_BYTES
from music_evals.ui.widgets.bars import BAR_CSS
from music_evals.ui.words import ENGLISH

if TYPE_CHECKING:
    import gradio as gr

    from music_evals.ui.words import Words

__all__ = [
    "REMOVAL",
    "RETENTION_SEC",
    "code_html",
    "code_panel",
    "downloads_panel",
    "friendly",
    "language_switch",
    "launch",
    "on_click",
    "receipt_html",
    "serve",
    "space",
    "temporary_folder",
    "with_progress",
    "write_downloads",
]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

RETENTION_SEC = 3600
"""Uploads, downloads and the state of pages are removed once they are older, by the next sweep."""

SWEEP_SEC = 300  # between two looks for what is too old, by us and by Gradio

REMOVAL = "Files that you upload and files that are made for you are removed within 70 minutes."
"""What pages and their cards say of removal: the retention, a sweep, and five minutes to spare."""

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # what makes a spreadsheet compute a cell

# of the visitor's system, Chinese included: no font is fetched
FONTS = ("system-ui", "sans-serif")
MONO_FONTS = ("ui-monospace", "monospace")
SKIP = {"en": "Skip to the tool", "zh": "跳到工具"}

CSS = """
.gradio-container {--me-quiet: color-mix(in srgb, var(--body-text-color) 78%, transparent); overflow-wrap: break-word}
.gradio-container :focus-visible {outline: 2px solid var(--color-accent); outline-offset: 2px}
.gradio-container .prose table {display: block; max-width: 100%; overflow-x: auto; border: 0}
.gradio-container .prose :is(th, td) {overflow-wrap: normal; word-break: normal}
.me-anchor {position: absolute !important}
.me-skip {position: absolute; left: -100vw; top: 0; z-index: 100; padding: .5rem 1rem; white-space: nowrap;
  background: var(--background-fill-primary); color: var(--body-text-color)}
.me-skip:focus {left: 0}
.me-receipt {display: grid; grid-template-columns: minmax(5rem, max-content) 1fr; gap: .2rem 1rem; margin: 0;
  font-size: var(--text-sm)}
.me-receipt dt {color: var(--me-quiet)}
.me-receipt dd {margin: 0; font-family: var(--font-mono); overflow-wrap: anywhere}
.me-receipt dd .me-receipt {grid-template-columns: fit-content(10rem) 1fr}
.me-code {white-space: pre-wrap; padding: .5rem; background: var(--background-fill-secondary);
  font-family: var(--font-mono)}
"""


@contextlib.contextmanager
def space(
    title: str, intro: str, *, words: Words | None = None, max_upload_bytes: int = MAX_UPLOAD_BYTES
) -> Iterator[gr.Blocks]:
    """Open the frame of a page; what is built inside the ``with`` stands in it.

    The page has a link that skips to the tool for those who use a keyboard, a title, an introduction, and files that
    are removed as `REMOVAL` says, and when the process ends.

    Parameters
    ----------
    title
        Plain text: heading and title of the window.
    intro
        Markdown below the heading.
    words
        Words of the page, for what the frame says before a language is chosen; see `language_switch`.
    max_upload_bytes
        Largest file that a visitor may send; `launch` enforces it.

    Yields
    ------
    gr.Blocks
        Not launched.

    """
    import gradio as gr

    os.environ.setdefault("GRADIO_TEMP_DIR", str(_workspace() / "gradio"))
    with gr.Blocks(title=title, analytics_enabled=False, delete_cache=(SWEEP_SEC, RETENTION_SEC)) as page:
        spoken = words.languages if words is not None else (ENGLISH,)
        skip = " / ".join(SKIP[language] for language in spoken)
        gr.HTML(f'<a class="me-skip" href="#tool">{skip}</a>', elem_id="skip", elem_classes="me-anchor")
        gr.Markdown(f"# {title}\n\n{intro}", elem_id="intro")
        gr.HTML('<span id="tool" tabindex="-1"></span>', elem_classes="me-anchor")
        yield page
    page.max_upload_bytes = max_upload_bytes
    page.validate_inputs = functools.partial(_validate_inputs, page.validate_inputs)


def _validate_inputs(validate: Callable[[Any, Any], None], event: Any, inputs: Any) -> None:
    """Refuse addresses in place of files, which Gradio would fetch for a caller of the API; then validate as ever."""
    if any(_is_address(path) for path in _paths(inputs)):
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


def _is_address(path: Any) -> bool:
    return isinstance(path, str) and re.match(r"\s*[a-z][a-z0-9+.-]*:", path, flags=re.IGNORECASE) is not None


def serve(build_demo: Callable[[], gr.Blocks], app_file: str | os.PathLike[str]) -> None:
    """Build a page and serve it, as a script; what is missing for it is one line on stderr and exit code 1.

    Parameters
    ----------
    build_demo
        Builds the page with `space`.
    app_file
        ``__file__`` of the `app.py`; the extras that `requirements.txt` beside it names must be installed.

    """
    requirements = Path(app_file).with_name("requirements.txt").read_text(encoding="utf-8")
    try:
        for extras in re.findall(r"^music[_-]evals\[([\w,]+)\]", requirements, flags=re.MULTILINE):
            check_extras(extras.split(","), "this page")
        page = build_demo()
    except MusicEvalsError as error:
        sys.exit(f"error: {error}")
    launch(page)


def launch(page: gr.Blocks, **options: Any) -> Any:
    """Serve a page: uploads bounded, no folder of the machine shown, no statistics, no public link.

    Parameters
    ----------
    page
        What `space` gave.
    options
        Go to `gradio.Blocks.launch`, over ours.

    """
    import gradio as gr

    settings: dict[str, Any] = {
        "max_file_size": getattr(page, "max_upload_bytes", MAX_UPLOAD_BYTES),
        "allowed_paths": [],
        "theme": gr.themes.Soft(font=FONTS, font_mono=MONO_FONTS),
        "css": CSS + BAR_CSS,
        "show_error": False,  # a named error is shown as gr.Error; what is a bug tells visitors nothing of the machine
        "share": False,
        "run_history": False,
        "footer_links": ["api", "settings"],
        "ssr_mode": False,
    }
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _leave)
    return page.launch(**settings | options)


def _leave(number: int, _: object) -> None:
    """End in good order when told to end: temporary files go."""
    sys.exit(128 + number)


def friendly(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Show an error that the library names as plain words on the page; any other is a bug and stays one.

    Generators are wrapped as generators. Gradio renders messages as HTML, and ours quote typed text and file names:
    they are escaped, and shown without the folder of the upload.
    """
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def steps(*args: Arguments.args, **options: Arguments.kwargs) -> Any:
            with _plain_words():
                yield from function(*args, **options)

        return steps

    @functools.wraps(function)
    def answer(*args: Arguments.args, **options: Arguments.kwargs) -> Result:
        with _plain_words():
            return function(*args, **options)

    return answer


@contextlib.contextmanager
def _plain_words() -> Iterator[None]:
    try:
        yield
    except MusicEvalsError as error:
        import gradio as gr

        message = html.escape(_without_folders(str(error)), quote=False)
        raise gr.Error(message, print_exception=False) from error


def _without_folders(message: str) -> str:
    """Return a message whose temporary files have lost their folders: visitors know their files by name."""
    for folder in {tempfile.gettempdir(), os.environ.get("GRADIO_TEMP_DIR", tempfile.gettempdir())}:
        message = re.sub(re.escape(folder) + r"(?:/[^/\s:]+)*/", "", message)
    return message


def with_progress(function: Callable[..., Result]) -> Callable[..., Result]:
    """Give a function's parameter ``progress`` the progress bar of the page; without one, return it as it is.

    The function calls ``progress(0.3, "Chords")``. A test passes a function of its own, or nothing where the parameter
    has a default.
    """
    signature = inspect.signature(function)
    if "progress" not in signature.parameters:
        return function
    import gradio as gr

    parameters = dict(signature.parameters)
    bar = parameters.pop("progress").replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD, default=gr.Progress())
    shown = signature.replace(parameters=[*parameters.values(), bar])

    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def steps(*args: Any) -> Any:
            yield from function(*args[:-1], progress=args[-1])

        wrapped: Any = steps
    else:

        @functools.wraps(function)
        def answer(*args: Any) -> Result:
            return function(*args[:-1], progress=args[-1])

        wrapped = answer
    wrapped.__signature__ = shown
    return wrapped  # type: ignore[no-any-return]


def on_click(
    button: Any,
    function: Callable[..., Any],
    inputs: Sequence[Any],
    outputs: Sequence[Any] | Any,
    *,
    name: str,
    cancel: Any = None,
    **options: Any,
) -> Any:
    """Wire a button: friendly errors, a progress bar, a public API name, one call at a time, and a cancel button.

    Parameters
    ----------
    button
        What is clicked.
    function
        Plain function, or a generator; a parameter called ``progress`` gets the bar. Only a generator ends when it is
        cancelled, at its next ``yield``.
    inputs, outputs
        Components.
    name
        API name.
    cancel
        Button that cancels the call.
    options
        Go to the event of Gradio.

    Returns
    -------
    gradio.events.Dependency
        With ``.then`` and ``.success``.

    """
    settings: dict[str, Any] = {
        "api_name": name,
        "api_visibility": "public",
        "concurrency_id": "judge",
        "concurrency_limit": 1,  # catching warnings is global to the process
    }
    event = button.click(friendly(with_progress(function)), list(inputs), outputs, **settings | options)
    if cancel is not None:
        cancel.click(None, cancels=[event], api_visibility="private")
    return event


def language_switch(words: Words, parts: Sequence[tuple[Any, Mapping[str, str]]], **options: Any) -> gr.Radio:
    """Add a switch of languages that rewrites properties of components.

    Parameters
    ----------
    words
        Words of the page.
    parts
        (component, property -> key of `words`), such as ``(button, {"value": "judge"})``.
    options
        Go to `gradio.Radio`, over ours.

    """
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
    >>> receipt_html({"variant": "<b>"})
    '<dl class="me-receipt"><dt>variant</dt><dd>&lt;b&gt;</dd></dl>'

    """
    rows = "".join(
        f"<dt>{html.escape(str(name))}</dt><dd>{_receipt_value(value)}</dd>" for name, value in receipt.items()
    )
    return f'<dl class="me-receipt">{rows}</dl>'


def _receipt_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return receipt_html(value)
    if isinstance(value, list | tuple):
        return ", ".join(_receipt_value(part) for part in value) or "none"
    if value is None:
        return "none"
    return html.escape(f"{value:g}" if isinstance(value, float) else str(value))


def code_html(code: str) -> str:
    """Return code as escaped HTML, for pages that need no copy button."""
    return f'<pre class="me-code"><code>{html.escape(code)}</code></pre>'


def code_panel(label: str = "Copy as code") -> tuple[gr.Code, gr.Code]:
    """Add a panel with the Python (``#code_python``) and the command (``#code_shell``) that give the same result.

    Both have a copy button; a callback fills them.
    """
    import gradio as gr

    with gr.Accordion(label, open=False, elem_id="code"):
        python = gr.Code(language="python", label="Python", interactive=False, elem_id="code_python", wrap_lines=True)
        shell = gr.Code(
            language="shell", label="Command line", interactive=False, elem_id="code_shell", wrap_lines=True
        )
    return python, shell


def downloads_panel() -> tuple[gr.DownloadButton, gr.DownloadButton]:
    """Add the buttons for JSON (``#download_json``) and CSV (``#download_csv``); `write_downloads` fills them."""
    import gradio as gr

    with gr.Row():
        buttons = [gr.DownloadButton(kind.upper(), elem_id=f"download_{kind}", size="sm") for kind in ("json", "csv")]
    return buttons[0], buttons[1]


def write_downloads(
    results: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], *, name: str = "results"
) -> tuple[str, str]:
    """Write results as JSON and rows as CSV into a `temporary_folder`.

    Parameters
    ----------
    results
        What JSON can say, and numpy numbers and arrays; NaN becomes null.
    rows
        Rows of the CSV; columns in the order in which they first appear. A text that a spreadsheet would compute
        (it begins with ``= + - @``) gets an apostrophe in front.
    name
        Stem of the file names.

    Returns
    -------
    json_path, csv_path : str

    """
    target = temporary_folder()
    json_path, csv_path = target / f"{name}.json", target / f"{name}.csv"
    text = json.dumps(_plain(results), ensure_ascii=False, indent=2, allow_nan=False)
    json_path.write_text(text + "\n", encoding="utf-8")
    csv_path.write_text(_csv(rows), encoding="utf-8", newline="")
    return str(json_path), str(csv_path)


def temporary_folder() -> Path:
    """Return a new empty folder that is removed as `REMOVAL` says, and with the process."""
    return Path(tempfile.mkdtemp(dir=_kept()))


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(map(_cell, columns))
    writer.writerows([_cell(row.get(name)) for name in columns] for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    """Return a cell of a CSV that no spreadsheet computes; undefined is empty."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return value


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


@functools.cache
def _kept() -> Path:
    """Return the folder of temporary folders, which is swept as long as the process lives, visitors or none."""
    folder = _workspace() / "kept"
    folder.mkdir()
    threading.Thread(target=_keep_sweeping, args=(folder, SWEEP_SEC), name="sweep", daemon=True).start()
    return folder


def _keep_sweeping(folder: Path, every_sec: float) -> None:
    """Sweep a folder again and again until it is gone."""
    while folder.is_dir():
        with contextlib.suppress(OSError):  # it goes with the process, perhaps at this moment
            _sweep(folder)
        time.sleep(every_sec)


def _sweep(folder: Path) -> None:
    """Remove what is older than `RETENTION_SEC`."""
    for path in folder.iterdir():
        if time.time() - path.stat().st_mtime > RETENTION_SEC:
            shutil.rmtree(path, ignore_errors=True)
