"""Hostile and unlucky input ends in a named error, and costs its own row alone where there are others."""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from music_evals import yaml_files
from music_evals.annotations import Score
from music_evals.benchmark.inputs import manifest_rows
from music_evals.benchmark.records import RecordStore, read_records
from music_evals.benchmark.tasks.edits.task import EDITS
from music_evals.benchmark.tasks.edits.task import Settings as EditSettings
from music_evals.benchmark.tasks.inpainting.predictions import load_pairs
from music_evals.benchmark.tasks.preservation.pairs import pairs_in_manifest
from music_evals.datasets.archives import read_archive
from music_evals.errors import CorruptRecordsError, InvalidInputError, MusicEvalsError, NoDataError, UnreadableFileError
from music_evals.hub.eval_files import read_eval_yaml, read_results_file, write_results_file
from music_evals.hub.heads import read_head, read_yaml, replace_block, set_block
from music_evals.hub.model_index import held_values, merge_index, read_index, write_index
from music_evals.locations import location
from music_evals.symbolic.midi import save_midi
from music_evals.symbolic.notation import from_abc
from music_evals.symbolic.notes import make_notes

sys.path.insert(0, str(Path(__file__).parent / "models"))

ROOT = Path(__file__).resolve().parents[1]
CASES = Path(os.environ.get("MUSIC_EVALS_HOSTILE_CASES", ROOT.parent / "shared" / "cases" / "reliability"))
"""Inputs that once ended in a traceback, ``<target>.<digest>``; fuzzers gave some of them a first byte of their own."""

NAMES = {
    "null byte": "b.\0wav",
    "half a character": "b.\ud800wav",
    "long name": f"{'x' * 5_000}.wav",
    "long path": f"{'x' * 100}/" * 60 + "b.wav",
    "near the limit of a field": f"{'x' * 100_000}.wav",
}


# what a case is handed to, and how it ends


def abc(content: bytes, _: Path) -> None:
    from_abc(content.decode())


def archive(content: bytes, folder: Path) -> None:
    (folder / "a.zip").write_bytes(content)
    read_archive(folder / "a.zip", frozenset({".mid"}))


def manifest(content: bytes, folder: Path) -> None:
    (folder / "list.csv").write_bytes(content.removeprefix(b"C"))
    found = pairs_in_manifest(folder / "list.csv")
    assert not found.pairs
    raise InvalidInputError("; ".join(failure.error for failure in found.failures))


def shard(content: bytes, folder: Path) -> None:
    content = content.removeprefix(b"\1")
    (folder / f"00000-{hashlib.sha256(content).hexdigest()[:16]}.parquet").write_bytes(content)
    list(read_records(folder))


def songs(content: bytes, folder: Path) -> None:
    pytest.importorskip("sqlalchemy")
    from music_evals.caimap.exchange.importing import read_songs

    (folder / "songs.jsonl").write_bytes(content)
    read_songs(folder / "songs.jsonl", folder)


ENTRY: dict[str, Any] = {
    "task": {"type": "x"},
    "dataset": {"name": "d", "type": "d", "config": "c", "split": "test"},
    "metrics": [{"type": "t", "value": 0.5}],
}


def card(content: bytes, _: Path) -> None:
    """Every way in which YAML of others is read or changed."""
    text = content.decode()
    whole = f"---\n{text}---\n"
    errors = []
    for act in (
        lambda: read_yaml(text, "here"),
        lambda: set_block(text, "tags", ["a"], "here"),
        lambda: set_block(text, "<<", "a", "here"),
        lambda: set_block(text, 0, {"a": 1}, "here"),
        lambda: read_head(whole),
        lambda: replace_block(whole, "tags", ["a"]),
        lambda: list(held_values(read_index(whole))),
        lambda: write_index(whole, merge_index(read_index(whole), ENTRY, "m")[0]),
        lambda: write_results_file([{"value": 1}], text, "here"),
        lambda: read_results_file(text, "here"),
        lambda: read_eval_yaml(text, "here"),
    ):
        try:
            act()
        except MusicEvalsError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def model_folder(content: bytes, folder: Path) -> None:
    pytest.importorskip("torch")
    from tiny_networks import build

    from music_evals.models.anticipation_rnn import AnticipationRNN

    build(AnticipationRNN).save_pretrained(folder)
    (folder / "config.json").write_bytes(content.removeprefix(b"c"))
    AnticipationRNN.from_pretrained(folder)


def recipe(content: bytes, folder: Path) -> None:
    pytest.importorskip("torch")
    from music_evals.models.training.recipe import read_recipe

    (folder / "train.yaml").write_bytes(content)
    read_recipe(folder / "train.yaml")


ENDS: dict[str, tuple[Callable[[bytes, Path], None], type[MusicEvalsError]]] = {
    "abc_read": (abc, UnreadableFileError),
    "archives": (archive, UnreadableFileError),
    "caimap_songs": (songs, InvalidInputError),
    "cards": (card, UnreadableFileError),
    "manifest": (manifest, MusicEvalsError),
    "model_folder": (model_folder, InvalidInputError),
    "recipe": (recipe, UnreadableFileError),
    "shards": (shard, CorruptRecordsError),
}


@pytest.mark.skipif(not CASES.is_dir(), reason=f"no inputs in {CASES}; MUSIC_EVALS_HOSTILE_CASES names another folder")
@pytest.mark.parametrize("name", sorted(path.name for path in CASES.glob("*.*") if path.suffix != ".md"))
def test_inputs_that_once_ended_in_a_traceback(name: str, tmp_path: Path) -> None:
    use, kind = ENDS[name.partition(".")[0]]
    with pytest.raises(kind) as told:
        use((CASES / name).read_bytes(), tmp_path)
    if name in {"manifest.6446b1c3", "manifest.a8c97617", "manifest.b6520b09"}:
        assert type(told.value) is UnreadableFileError
        assert "line " in str(told.value)
    if name == "caimap_songs.422a382e":
        assert "row 1" in str(told.value)


# rows of tables


def tune(path: Path) -> None:
    save_midi(Score(make_notes(np.arange(16) * 480, 480, 60), 480), path)


def table(path: Path, rows: list[dict[str, str]]) -> Path:
    """Write rows as CSV or as JSON lines, by the suffix."""
    if path.suffix == ".csv":
        lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
        path.write_bytes("\n".join([*lines, ""]).encode("utf-8", "surrogatepass"))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


HOSTILE = [name for kind, name in NAMES.items() if kind != "half a character"]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
class TestRows:
    def test_of_pairs(self, tmp_path: Path, suffix: str) -> None:
        for name in ("a.mid", "b.mid"):
            tune(tmp_path / name)
        rows = [{"reference": "a.mid", "estimate": name} for name in ("b.mid", *HOSTILE, "a.mid")]
        rows = [{**row, "id": str(number)} for number, row in enumerate(rows, start=1)]
        found = pairs_in_manifest(table(tmp_path / f"list{suffix}", rows))
        assert [pair.estimate.name for pair in found.pairs] == ["b.mid", "a.mid"]
        assert len(found.failures) == len(HOSTILE)
        for number, failure in enumerate(found.failures, start=2):
            assert failure.item == str(number)
            assert f"list{suffix}, row {number}: " in failure.error
            assert len(failure.error) < 1_000

    def test_of_edits(self, tmp_path: Path, suffix: str) -> None:
        soundfile.write(tmp_path / "a.wav", np.sin(np.arange(8000) / 9), 8000)
        rows = [{"source": "a.wav", "id": "x"}, *({"source": name, "id": ""} for name in HOSTILE)]
        rows += [*({"source": "a.wav", "id": name} for name in HOSTILE), {"source": "a.wav", "id": "y"}]
        path = table(tmp_path / f"list{suffix}", rows)
        edits = EDITS.run(EditSettings(tmp_path / "out", sources=[str(path)], system="identity", workers=1))
        assert [row["item"] for row in edits.rows if "error" not in row] == ["x", "y"]
        assert len(edits.failures) == 2 * len(HOSTILE)
        for number, (item, reason) in enumerate(edits.failures, start=2):
            assert item == f"row {number}"
            assert f"list{suffix}, row {number}: " in reason

    def test_of_gaps(self, tmp_path: Path, suffix: str) -> None:
        save_midi(Score(make_notes(np.arange(64) * 480, 480, 60), 480), tmp_path / "a.mid")
        names = ["a.mid", *(f"{name}.mid" for name in HOSTILE)]
        rows = [{"reference": "a.mid", "prediction": name, "item_id": f"i{n}"} for n, name in enumerate(names)]
        judged, system = load_pairs(table(tmp_path / f"list{suffix}", rows))
        assert judged.item_ids == tuple(f"i{n}" for n in range(len(names)))
        assert list(system.failures) == [f"i{n}" for n in range(1, len(names))]


def test_half_a_character_names_file_and_line(tmp_path: Path) -> None:
    rows = [{"reference": "a.mid", "estimate": name} for name in ("b.mid", NAMES["half a character"])]
    for suffix in (".csv", ".jsonl"):
        with pytest.raises(UnreadableFileError, match=rf"list\{suffix}, line [23]\b"):
            manifest_rows(table(tmp_path / f"list{suffix}", rows))


@pytest.mark.parametrize("kind", sorted(NAMES))
def test_names_that_no_file_can_have(kind: str) -> None:
    with pytest.raises(InvalidInputError):
        location(NAMES[kind])


@pytest.mark.parametrize("kind", sorted(NAMES))
@pytest.mark.parametrize("base", [False, True])
def test_recipes_of_such_names(kind: str, base: bool, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from music_evals.models.training.recipe import read_recipe

    path = tmp_path / "train.yaml"
    path.write_text(json.dumps({"base": NAMES[kind]}))
    with pytest.raises((UnreadableFileError, InvalidInputError)):
        read_recipe(path if base else tmp_path / NAMES[kind])


def bomb(levels: int, width: int) -> str:
    lines = ["a0: &a0 [x, y]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, levels))]
    return "\n".join(lines) + "\n"


YAML = {
    "brackets": "[" * 3_000,
    "braces": "tags: " + "{" * 5_000,
    "dashes": "- " * 3_000 + "x\n",
    "keys": "? " * 2_000,
    "scalar": "a text alone\n",
    "number": "1\n",
    "itself": "a: &a [*a]\n",
    "merged": "dataset: &a {name: d}\n<<: *a\ntags: {<<: *a}\n<<: 1\n",
    "aliases": bomb(9, 10),
    "tag": "!!python/object/apply:os.system ['true']\n",
    "long": "x" * 2_000_000,
}


@pytest.mark.parametrize("kind", sorted(YAML))
def test_yaml_of_strangers(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_files, "_MOST_VALUES", 5_000)  # of 100,000, which each way counts anew
    with pytest.raises((UnreadableFileError, InvalidInputError)):
        card(YAML[kind].encode(), tmp_path)
    with pytest.raises((UnreadableFileError, InvalidInputError)):
        recipe(YAML[kind].encode(), tmp_path)


# damage


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Change, cut out or put in some bytes, half of them near the end, where Parquet and zip keep their lists."""
    made = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 8])):
        place = rng.randrange(len(made)) if rng.random() < 0.5 else len(made) - rng.randrange(1, min(len(made), 900))
        act = rng.randrange(3)
        if act == 0:
            made[place] = rng.randrange(256)
        elif act == 1:
            del made[place : place + rng.randrange(1, 9)]
        else:
            made[place:place] = rng.randbytes(rng.randrange(1, 9))
    return bytes(made)


def good_shard(folder: Path) -> bytes:
    sides = {side: {"name": "a", "content": "c"} for side in ("reference", "estimate")}
    rows: list[dict[str, Any]] = []
    for number in range(20):
        about = {"item": f"i{number}", "system": "s"}
        rows += [
            {"kind": "pair", **about, **sides, "group": "g", "modality": "audio", "treatment": ""},
            {"kind": "score", **about, "content": ["c", "d"], "metric": "m", "value": 0.5},
            {"kind": "remarks", **about, "content": ["c", "d"], "notes": ["x"]},
            {"kind": "other", **about, "deep": [1, {"a": 2}]},
        ]  # fmt: skip
    with RecordStore(folder / "good", {"version": 1}, rows):
        pass
    (path,) = (folder / "good").glob("*.parquet")
    return path.read_bytes()


def good_zip(folder: Path) -> bytes:
    with zipfile.ZipFile(folder / "good.zip", "w", zipfile.ZIP_DEFLATED) as made:
        for name in ("a/b.mid", "c.mid", "d/"):
            made.writestr(name, b"MThd" * 40)
    return (folder / "good.zip").read_bytes()


@pytest.mark.parametrize(
    ("make", "use", "kinds"),
    [(good_shard, shard, (CorruptRecordsError,)), (good_zip, archive, (UnreadableFileError, NoDataError))],
)
def test_damage_is_named(make: Any, use: Any, kinds: Any, tmp_path: Path) -> None:
    content, rng = make(tmp_path), random.Random(37)
    folder = tmp_path / "records"
    folder.mkdir()
    n_named = 0
    for _ in range(400):
        try:
            use(damaged(content, rng), folder)
        except kinds:
            n_named += 1
        for path in folder.iterdir():
            path.unlink()
    assert n_named > 300


def test_a_shard_with_rows_of_other_forms(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    whole = pq.read_table(pa.BufferReader(good_shard(tmp_path)))
    last = len(whole) - 1

    def with_cell(name: str, value: Any) -> pa.Table:
        cells = [*whole[name].to_pylist()[:last], value]
        field = whole.schema.field(name)
        column = pa.array(cells, pa.string() if name != "value" else pa.float64())
        column = column.dictionary_encode() if pa.types.is_dictionary(field.type) else column
        return whole.set_column(whole.schema.get_field_index(name), field, column)

    changed = [
        with_cell("json", "{"), with_cell("json", "[" * 100_000), with_cell("json", "1"), with_cell("json", "{}"),
        with_cell("json", '{"kind": "score"}'), with_cell("kind", "nothing"), with_cell("kind", None),
        whole.drop_columns(["metric"]), whole.set_column(0, "kind", pa.array([1] * len(whole))),
    ]  # fmt: skip
    changed[5] = changed[5].set_column(whole.schema.get_field_index("json"), "json", pa.nulls(len(whole), pa.string()))
    for number, made in enumerate(changed):
        folder = tmp_path / str(number)
        folder.mkdir()
        sink = pa.BufferOutputStream()
        pq.write_table(made.replace_schema_metadata(whole.schema.metadata), sink)
        with pytest.raises(CorruptRecordsError):
            shard(sink.getvalue().to_pybytes(), folder)


@pytest.mark.parametrize(
    "names", [["", "a.mid"], ["/a.mid"], ["../a.mid"], ["a/../../a.mid"], ["..\\a.mid"], ["a.mid", "a.mid"]]
)
def test_archives_with_names_that_cannot_be(names: list[str], tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as made:
        for name in names:
            about = zipfile.ZipInfo("placeholder")
            about.filename = name
            with pytest.warns(UserWarning, match="Duplicate") if name in made.namelist() else _nothing():
                made.writestr(about, b"MThd")
    with pytest.raises(UnreadableFileError):
        read_archive(tmp_path / "a.zip", frozenset({".mid"}))


def _nothing() -> Any:
    import contextlib

    return contextlib.nullcontext()


SIZES = [10**20, -(10**20), 2**63, 2**31, 60_000, -1, "4", True, None, 1.5, [4]]


def test_configs_of_models(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tiny_networks import build

    from music_evals.models.infill_transformer import InfillTransformer

    build(InfillTransformer).save_pretrained(tmp_path)
    config = tmp_path / "config.json"
    settings = json.loads(config.read_text())
    for name in ("n_layers", "n_heads", "model_size"):
        for value in SIZES:
            config.write_text(json.dumps({**settings, name: value}))
            with pytest.raises((InvalidInputError, UnreadableFileError)):
                InfillTransformer.from_pretrained(tmp_path)
    for text in ("[" * 50_000, json.dumps({**settings, "model_type": "x" * 2**21}), "{}{", '{"size": [1]}'):
        config.write_text(text)
        with pytest.raises((InvalidInputError, UnreadableFileError)):
            InfillTransformer.from_pretrained(tmp_path)
