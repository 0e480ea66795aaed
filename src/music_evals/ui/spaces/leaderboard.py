"""The Space that shows a board: tables with rank ranges, and behind each score the items that it was made of.

The board is a folder, or a dataset repository on the Hub, named by the environment variable ``MUSIC_EVALS_BOARD``. What
a button does is a plain function here, which needs no browser; `build_page` wires them up.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from music_evals.benchmark.formats import plain
from music_evals.benchmark.tasks.preservation.pairs import AUDIO_SUFFIXES
from music_evals.errors import HubError, InvalidInputError, MusicEvalsError, NoDataError, UnknownNameError, hub_errors
from music_evals.leaderboard.board import DETAILS, RESULTS, DetailReader, read_board
from music_evals.leaderboard.details import MAX_MEDIA_BYTES, SIDES
from music_evals.leaderboard.export import LEGEND, csv_rows, latex_table, load_leaderboard
from music_evals.leaderboard.records import ResultRecord
from music_evals.leaderboard.tables import make_leaderboard
from music_evals.ui import frame
from music_evals.ui.spaces import leaderboard_views as views
from music_evals.ui.widgets.roll_view import roll_view

if TYPE_CHECKING:
    import gradio as gr

BOARD_VARIABLE = "MUSIC_EVALS_BOARD"

TITLE = "Leaderboard"
INTRO = """\
How music models were judged with `music_evals`. A rank is a range where the data leave it open: "ranks 2-4". Results
share a table only where they were made alike; what papers report stands in tables of its own and has no rank. Controls
and baselines have ranks too: nobody stands above one that they cannot be told from. Click a heading to sort, and a
score for the items behind it."""
HELP = f"""\
{LEGEND} A score is printed with two significant digits of half the width of its interval. Which results may be
ranked together, how ranges are made and what they cover: `music_evals.leaderboard.ranks` and
`music_evals.leaderboard.tables`."""
LARGEST_ITEM_LIST = 2000

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")

Named = TypeVar("Named")


@dataclasses.dataclass(eq=False)
class Board:
    """What a page shows: a folder or repository by its name, where it lies, its tables, and records by id."""

    name: str
    folder: Path
    leaderboard: dict[str, Any]
    records: dict[str, ResultRecord]
    details: DetailReader

    @property
    def choices(self) -> list[tuple[str, str]]:
        """Tables, those of presets first: (title, id)."""
        return [(table["preset"] or table["title"], table["id"]) for table in self.leaderboard["tables"]]

    def table(self, name: str) -> dict[str, Any]:
        """Return a table by its id."""
        return _named("table", name, {table["id"]: table for table in self.leaderboard["tables"]})

    def record(self, name: str) -> ResultRecord:
        """Return a record by its id."""
        return _named("record", name, self.records)

    def table_of(self, record: str) -> dict[str, Any]:
        """Return the table that shows a record; raise if a later one of the same system replaced it."""
        rows = [(table, row) for table in self.leaderboard["tables"] for row in table["rows"]]
        shown = {cell["record"]: table for table, row in rows for cell in row["cells"].values() if cell["record"]}
        return _named("record in a table", record, shown)


def _named(kind: str, name: str, known: Mapping[str, Named]) -> Named:
    if str(name) not in known:
        raise UnknownNameError(kind, str(name), known)
    return known[str(name)]


def board_folder(name: str) -> Path:
    """Return a folder, or fetch a dataset repository (``owner/name``) from the Hub, its Parquet files alone."""
    folder = Path(name)
    if name and folder.is_dir():
        return folder
    if not _REPOSITORY.fullmatch(name):
        raise NoDataError(f"{BOARD_VARIABLE} is {name!r}: neither a folder nor a dataset repository (owner/name)")
    import huggingface_hub

    patterns = [f"{RESULTS}/*.parquet", f"{DETAILS}/*.parquet"]  # not its tables, which are made again
    try:
        fetched = huggingface_hub.snapshot_download(name, repo_type="dataset", allow_patterns=patterns)
    except hub_errors() as error:
        raise HubError(
            f"the board {name} cannot be fetched from the Hub ({type(error).__name__}); check its name and the network"
        ) from error
    return Path(fetched)


def load_board(name: str, *, progress: frame.Progress = frame.no_progress) -> Iterator[Board | None]:
    """Read a board and make its tables; yields None between stages, then the board.

    The tests that lie beside the data of a folder are used where they are of it; those of a board on the Hub are always
    made again.
    """
    progress(0.0, "Finding the board")
    folder = board_folder(name)
    yield None
    progress(0.2, "Reading the records")
    records = read_board(folder)
    yield None

    def tested(done: int, total: int, metric: str) -> None:
        progress(0.3 + 0.7 * done / total, f"Comparing systems: {metric}")

    if folder == Path(name):
        leaderboard = load_leaderboard(folder, records, progress=tested)
    else:
        leaderboard = make_leaderboard(records, progress=tested)
    yield Board(name, folder, leaderboard, {record.id: record for record in records}, DetailReader(folder))


def show_table(
    board: Board,
    table: str,
    search: str = "",
    outside: bool = True,  # noqa: FBT001, FBT002  (a page gives its fields in their order)
) -> tuple[str, str, dict[str, Any]]:
    """Return a table as HTML, what should be known of it, and its receipt.

    Args:
        table: Id of a table.
        search: Words that the name of a system must hold.
        outside: Show controls and other systems that are in no ranking.
    """
    content = board.table(table)
    receipt = {"board": board.name, "table": content["id"], **content["settings"]}
    shown = views.table_html(content, search=str(search or "")[:200], outside=outside)
    return shown, views.about_html(content), receipt


def show_items(board: Board, record: str) -> tuple[str, list[tuple[str, str]], dict[str, Any]]:
    """Return what stands behind a score: its numbers as HTML, its items (label, id), the worst first, and its receipt.

    Args:
        record: Id of a record, from a cell of a table.
    """
    held = board.record(record)
    table = board.table_of(record)
    scores = views.item_scores(held)
    items = [
        (f"{row.item} ({'undefined' if math.isnan(row.value) else f'{row.value:.3f}'})", row.item)
        for row in scores[:LARGEST_ITEM_LIST]
    ]
    row, _ = views.find_cell(table, record)
    about = {name: row[name] for name in ("system", "role", "content", "submitter", "date", "source") if row[name]}
    shown = views.score_html(table, held, scores)
    return shown, items, about | {"extractors": dict(held.extractors)} | dict(held.receipt)


def show_item(board: Board, record: str, item: str) -> tuple[str, str, dict[str, Path]]:
    """Return what can be shown of an item: piano rolls, words and timelines as HTML, and recordings by their side.

    Args:
        record: Id of a record.
        item: Id of one of its items.
    """
    held = board.record(record)
    if item not in held.items:
        raise UnknownNameError("item", str(item), held.items[:1000])
    rolls = views.music_html(board.details, held, item)
    words = "" if rolls else views.words_html(board.details, held, item)
    pair = board.details.content(held.run, item, held.system, "pair") or {}
    files = {}
    for side in SIDES:
        about = pair.get(side)
        content = str(about.get("content")) if isinstance(about, Mapping) else ""
        detail = board.details.get(held.run, content, "", "audio")
        if detail is None or not 0 < len(detail.media) <= MAX_MEDIA_BYTES:
            continue
        facts = board.details.content(held.run, content, "", "audio") or {}
        suffix = Path(str(facts.get("name"))).suffix.lower()
        if suffix in AUDIO_SUFFIXES:
            name = "".join(letter for letter in content if letter.isascii() and letter.isalnum())[:64]
            path = Path(_media_folder().name) / f"{name}{suffix}"
            if not path.exists():
                path.write_bytes(detail.media)
            files[side] = path
    return rolls, words, files


@functools.cache
def _media_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="music_evals_board_", ignore_cleanup_errors=True)


def table_code(board: Board, table: str) -> tuple[str, str]:
    """Return Python and a command that make the same table."""
    source = board.name if _REPOSITORY.fullmatch(board.name) and not Path(board.name).is_dir() else ""
    place = json.dumps("board" if source else board.folder.name)
    fetch = (
        f'from huggingface_hub import snapshot_download\n\nboard = snapshot_download("{source}", repo_type="dataset")\n'
        if source
        else f"board = {place}\n"
    )
    python = (
        f"from music_evals.leaderboard import build_leaderboard\n{fetch}"
        f'tables = build_leaderboard(board)["tables"]\n'
        f'table = next(table for table in tables if table["id"] == {json.dumps(table)})\n'
    )
    first = f"hf download {source} --repo-type dataset --local-dir board\n" if source else ""
    return python, f"{first}music-evals leaderboard build --board {'board' if source else board.folder.name} --out site"


def build_page(default: str | os.PathLike[str]) -> gr.Blocks:
    """Build the Space."""
    import gradio as gr

    name = os.environ.get(BOARD_VARIABLE) or str(default)
    held: dict[str, Board] = {}
    problem = ""
    try:
        for board in load_board(name):
            held |= {} if board is None else {"board": board}
    except MusicEvalsError as error:
        problem = str(error)
    with frame.space(TITLE, INTRO) as page:
        status = gr.Markdown(views.safe(problem) if problem else "", elem_id="status")
        choice, view = _table_part(held)
        _items_part(held, view)
        with gr.Row():
            reload = gr.Button("Read the board again", size="sm", elem_id="reload")
            cancel = gr.Button("Cancel", size="sm", elem_id="cancel")
        with gr.Accordion("How to read this", open=False):
            gr.Markdown(HELP)
        frame.on_click(
            reload, functools.partial(_reload, held, name), [], [status, choice], name="reload", cancel=cancel,
            show_progress_on=[status], api_description="Read the board again.",
        )  # fmt: skip
    return page


def _held(held: Mapping[str, Board]) -> Board:
    if "board" not in held:
        raise NoDataError("there is no board to show yet; press 'Read the board again'")
    return held["board"]


def _reload(
    held: dict[str, Board], name: str, *, progress: frame.Progress = frame.no_progress
) -> Iterator[tuple[Any, Any]]:
    """Read the board again, and show its first table."""
    import gradio as gr

    for board in load_board(name, progress=progress):
        if board is None:
            yield gr.skip(), gr.skip()
            continue
        held["board"] = board
        choices = board.choices
        yield f"{len(board.records)} records, {len(choices)} tables.", gr.update(choices=choices, value=choices[0][1])


def _table_part(held: dict[str, Board]) -> tuple[Any, Any]:
    """Add the choice of a table, its filter, the table, and what belongs to it; return choice and table."""
    import gradio as gr

    choices = held["board"].choices if held else []
    first = choices[0][1] if choices else None
    with gr.Row():
        table = gr.Dropdown(choices, value=first, label="Table", elem_id="table_choice", scale=3, min_width=280)
        search = gr.Textbox(
            label="Filter systems", max_lines=1, max_length=200, elem_id="search", scale=1, min_width=280
        )
    outside = gr.Checkbox(value=True, label="Controls and others outside the ranking", elem_id="outside")
    view = gr.HTML(
        css_template=views.TABLE_STYLE, js_on_load=views.TABLE_SCRIPT, apply_default_css=False, elem_id="table"
    )
    about = gr.HTML(js_on_load=None, elem_id="about")
    json_file, csv_file = frame.downloads_panel()
    with gr.Accordion("LaTeX", open=False):
        latex = gr.Code(language=None, label="Needs the package booktabs", interactive=False, elem_id="latex")
    python, shell = frame.code_panel()
    with gr.Accordion("Receipt: what all results of this table have in common", open=False):
        receipt = gr.HTML(js_on_load=None, elem_id="receipt")

    def show(table: str, search: str = "", outside: bool = True) -> tuple[Any, ...]:  # noqa: FBT001, FBT002
        """Show a table of the board.

        Args:
            table: Id of a table; `tables` lists them.
            search: Words that the name of a system must hold.
            outside: Show controls and other systems that are in no ranking.
        """
        board = _held(held)
        shown, notes, facts = show_table(board, table, search, outside)
        content = board.table(table)
        files = frame.write_downloads(content, csv_rows(content), name=content["id"])
        return shown, notes, *files, latex_table(content), *table_code(board, table), frame.receipt_html(facts)

    def tables() -> list[dict[str, Any]]:
        """List the tables of the board: id, title, and the preset that it answers to."""
        return [{key: entry[key] for key in ("id", "title", "preset")} for entry in _held(held).leaderboard["tables"]]

    outputs = [view, about, json_file, csv_file, latex, python, shell, receipt]
    event = {"inputs": [table, search, outside], "outputs": outputs, "show_progress": "hidden"}
    table.change(frame.friendly(show), **event, api_name="show_table", api_visibility="public")
    for part in (search, outside):
        part.change(frame.friendly(show), **event, api_visibility="private")
    gr.api(frame.friendly(tables), api_name="tables")

    def start() -> tuple[Any, ...]:
        if not held:
            return (gr.skip(), *[gr.skip()] * len(outputs))
        choices = _held(held).choices
        return (gr.update(choices=choices, value=choices[0][1]), *show(choices[0][1]))

    gr.context.Context.root_block.load(frame.friendly(start), None, [table, *outputs], api_visibility="private")
    return table, view


def _items_part(held: dict[str, Board], view: Any) -> None:
    """Add what stands behind a score."""
    import gradio as gr

    gr.Markdown("## Behind a score")
    behind = gr.HTML(
        "<p>Click a score in the table.</p>",
        css_template=views.TABLE_STYLE,
        js_on_load=None,
        apply_default_css=False,
        elem_id="cell",
    )
    record = gr.State("")
    item = gr.Dropdown([], label="Item, the worst first", elem_id="item", visible=False)
    rolls = roll_view(elem_id="rolls")
    words = gr.HTML(css_template=views.TABLE_STYLE, js_on_load=None, apply_default_css=False, elem_id="words")
    with gr.Row():
        audio = [gr.Audio(label=side, visible=False, interactive=False, elem_id=f"audio_{side}") for side in SIDES]
    with gr.Accordion("Receipt of the run", open=False):
        receipt = gr.HTML(js_on_load=None, elem_id="run_receipt")

    def item_views(board: Board, name: str, chosen: str) -> tuple[Any, ...]:
        music, text, files = show_item(board, name, chosen)
        sounds = [gr.update(value=str(files[side]) if side in files else None, visible=side in files) for side in SIDES]
        return music, text, *sounds

    def opened(name: str) -> tuple[Any, ...]:
        board = _held(held)
        shown, items, facts = show_items(board, name)
        choice = gr.update(choices=items, value=items[0][1] if items else None, visible=bool(items))
        rest = item_views(board, name, items[0][1]) if items else ("", "", *[gr.update(value=None, visible=False)] * 2)
        return name, shown, choice, *rest, frame.receipt_html(facts)

    def clicked(event: gr.EventData) -> tuple[Any, ...]:
        name = getattr(event, "record", None)
        if not isinstance(name, str):
            raise InvalidInputError("click a score in the table")
        return opened(name)

    def cell(record: str) -> dict[str, Any]:
        """Return the items behind a score.

        Args:
            record: Id of a record, from the JSON of a table.
        """
        entry = _held(held).record(record)
        items = plain([row._asdict() for row in views.item_scores(entry)])
        return {"system": entry.system, "metric": entry.metric, "items": items}

    clicked.__annotations__["event"] = gr.EventData  # Gradio reads it, and this module imports Gradio late
    outputs = [record, behind, item, rolls, words, *audio, receipt]
    view.click(frame.friendly(clicked), None, outputs, api_visibility="private", show_progress="hidden")
    chosen = frame.friendly(lambda name, which: item_views(_held(held), name, which))
    item.input(chosen, [record, item], [rolls, words, *audio], api_visibility="private")
    gr.api(frame.friendly(cell), api_name="items")
