"""Pairs out of datasets: two columns of recordings, or rows of scores that are rendered first.

The recordings of a dataset are taken as the bytes or files that they are and go through our own decoder, so that a
dataset and a folder of the same files give equal numbers.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from music_evals.benchmark.inputs import load_split, resolve_revision
from music_evals.benchmark.tasks.preservation.pairs import DEFAULT_COLUMNS, Columns, PairSet, candidate_of, make_pairs
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError
from music_evals.locations import Location, location
from music_evals.pipelines.suffixes import suffix_of
from music_evals.protocols import RENDERED_DATASETS, RENDERERS, RenderPair, load_plugin

__all__ = ["pairs_of_dataset"]

RENDERING = "rendering"

KIND = "kind"
"""Column of a rendered dataset with the kind of edit: one mean over all kinds says nothing."""

Files = tuple[tuple[Location, str] | None, tuple[Location, str] | None]
"""Place and name of original and edit."""


def pairs_of_dataset(
    dataset: str,
    config: str | None,
    split: str,
    columns: Columns = DEFAULT_COLUMNS,
    *,
    folder: Path,
    revision: str | None = None,
    renderer: str | None = None,
    limit: int | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> PairSet:
    """Return the pairs of one split of a dataset."""
    name = Path(dataset).name
    _check_renderer(dataset, renderer, rendered=name in RENDERED_DATASETS)
    revision = resolve_revision(dataset, revision)
    rows = load_split(dataset, config, split, revision=revision)
    rows = rows.select(range(min(len(rows), limit or len(rows))))
    if not len(rows):
        raise NoDataError(f"{dataset}, split {split}: no rows; nothing can be compared")
    about = {"id": dataset, "config": rows.info.config_name, "split": split, "revision": revision}
    if name in RENDERED_DATASETS:
        about["renderer"] = renderer or RENDERERS[0]
        if columns.system == DEFAULT_COLUMNS.system:
            columns = columns._replace(system=KIND)
        render = functools.partial(load_plugin(RENDERED_DATASETS, name, "dataset"), renderer=about["renderer"])
        with_files = _render(rows, render, progress)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        with_files = _read(_undecoded(rows, columns, dataset), columns, folder)
    candidates = [
        candidate_of(
            row, files, columns, where=f"{dataset}, row {number}", item=f"row {number}", system=columns.estimate
        )
        for number, (row, files) in enumerate(with_files)
    ]
    return make_pairs(candidates, about)


def _check_renderer(dataset: str, renderer: str | None, *, rendered: bool) -> None:
    if renderer is not None and not rendered:
        raise InvalidInputError(
            f"{dataset} holds recordings, `renderer` is for {', '.join(RENDERED_DATASETS)}; leave it out"
        )
    if renderer not in {None, *RENDERERS}:
        raise UnknownNameError("renderer", str(renderer), RENDERERS)


def _render(
    rows: Any, render: RenderPair, progress: Callable[[int, int, str], None] | None
) -> Iterator[tuple[Mapping[str, Any], Files]]:
    """Yield each row with its recordings; all that say the same sound the same."""
    for number, row in enumerate(rows, start=1):
        reference, estimate = render(row)
        if progress is not None:
            progress(number, len(rows), RENDERING)
        yield row, ((reference, reference.name), (estimate, estimate.name))


def _read(rows: Any, columns: Columns, folder: Path) -> Iterator[tuple[Mapping[str, Any], Files]]:
    for row in rows:
        reference, estimate = (_file(row[name], folder) for name in (columns.reference, columns.estimate))
        yield row, (reference, estimate)


def _undecoded(rows: Any, columns: Columns, dataset: str) -> Any:
    """Keep what is needed of the split, and let audio be handed out as it is stored."""
    import datasets

    sides = [columns.reference, columns.estimate]
    missing = [name for name in sides if name not in rows.column_names]
    if missing:
        raise InvalidInputError(
            f"{dataset}: no column {', '.join(missing)}; it has {', '.join(rows.column_names)}. Name both with "
            "`reference_column` and `estimate_column`"
        )
    for name in sides:
        feature = rows.features[name]
        if isinstance(feature, datasets.Audio):
            rows = rows.cast_column(name, datasets.Audio(decode=False))
        elif getattr(feature, "dtype", "") not in {"string", "large_string"}:
            raise InvalidInputError(
                f"{dataset}: column {name} holds {feature}; expected audio, or paths or URLs as text"
            )
    words = [name for name, feature in rows.features.items() if isinstance(feature, datasets.Value)]
    return rows.select_columns(list(dict.fromkeys([*sides, *words])))


def _file(value: Any, folder: Path) -> tuple[Location, str] | None:
    """Return the file of a cell: its own path or URL, or one that its bytes are written to, named by what they are."""
    if value is None:
        return None
    if isinstance(value, str):
        return (location(value), value) if value else None
    content, path = value["bytes"], value["path"]
    if content is None:
        return (location(path), path) if path else None
    written = folder / f"{hashlib.sha256(content).hexdigest()[:32]}{suffix_of(content, path)}"
    if not written.exists():
        written.write_bytes(content)
    # two recordings of one name need not be the same: the name also says what it holds
    return written, f"{written.stem[:16]}/{Path(path).name}" if path else written.name
