"""Pickled weights become safetensors, whole or not at all, in a process that makes nothing but tensors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from music_evals.cli import main
from music_evals.editing import conversion
from music_evals.editing.conversion import convert, require_converted
from music_evals.errors import FileTooLargeError, ModelUnavailableError, UnreadableFileError

torch = pytest.importorskip("torch")

from safetensors import safe_open  # noqa: E402

from music_evals.editing.conversion import check_loading_info, hub_options, load_tensors  # noqa: E402


class Evil:
    """Runs a command where a pickle of it is opened without a guard."""

    def __init__(self, touched: Path) -> None:
        self.touched = touched

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.touched),)


def stored(file: Path, **tensors: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    torch.save(tensors, file)
    return file


@pytest.mark.slow
def test_each_model_of_a_folder_gets_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Types, shapes and what is published under two names are kept; parts are merged; what is there stays."""
    weight = torch.arange(6.0).view(2, 3)
    stored(tmp_path / "text" / "pytorch_model-00001-of-00002.bin", a=weight.half(), b=weight.T)
    stored(tmp_path / "text" / "pytorch_model-00002-of-00002.bin", c=weight, tied=weight)
    stored(tmp_path / "text" / "training_args.bin", rate=1.0)
    stored(tmp_path / "unet" / "diffusion_pytorch_model.bin", d=weight)
    stored(tmp_path / "unet" / "pytorch_model.bin", e=weight)
    (tmp_path / "unet" / "model-00001-of-00002.safetensors").write_bytes(b"there already")
    with pytest.raises(ModelUnavailableError, match=f"is a pickled file.*music-evals convert {tmp_path}"):
        hub_options(tmp_path, None)
    assert main(["convert", str(tmp_path)]) == 0
    made = [tmp_path / "text" / "model.safetensors", tmp_path / "unet" / "diffusion_pytorch_model.safetensors"]
    assert capsys.readouterr().out.splitlines() == [str(path) for path in made]
    tensors = load_tensors(made[0])
    assert {name: (one.dtype, tuple(one.shape)) for name, one in tensors.items()} == {
        "a": (torch.float16, (2, 3)), "b": (torch.float32, (3, 2)),
        "c": (torch.float32, (2, 3)), "tied": (torch.float32, (2, 3)),
    }  # fmt: skip
    assert torch.equal(tensors["b"], weight.T)
    assert torch.equal(tensors["tied"], tensors["c"])
    with safe_open(made[0], "pt") as file:
        assert file.metadata() == {"format": "pt"}, "which transformers asks for"
    stored(tmp_path / "unet" / "state_dict.bin", f=weight)  # as beside the safetensors of MusicGen
    require_converted(tmp_path)
    assert hub_options(tmp_path, None) == {}
    (tmp_path / "unet" / "state_dict.bin").unlink()
    assert main(["convert", str(tmp_path)]) == 0
    assert "no pickled weights that are not there" in capsys.readouterr().err


def test_the_tensors_of_a_checkpoint_of_audiocraft_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.save({"best_state": {"a": torch.ones(2)}, "xp.cfg": "a: 1"}, tmp_path / "state_dict.bin")
    ((made, files),) = conversion._unconverted(tmp_path)
    assert made.name == "state_dict.safetensors"
    monkeypatch.setattr(sys, "addaudithook", lambda _: None)  # here it would hold for all tests
    conversion._write(json.dumps([*map(str, files), str(made)]).encode())
    assert load_tensors(made)["a"].tolist() == [1, 1]


@pytest.mark.slow
def test_what_holds_more_than_tensors_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touched = tmp_path / "owned"
    file = stored(tmp_path / "pytorch_model.bin", a=Evil(touched))
    with pytest.raises(UnreadableFileError, match="something else than tensors"):
        convert(tmp_path)
    assert not touched.exists()
    assert list(tmp_path.iterdir()) == [file], "nothing is left behind"
    monkeypatch.setattr(sys, "addaudithook", lambda _: None)  # here it would hold for all tests
    part = str(tmp_path / "part")
    for held in ({"a": 1.0}, [torch.ones(1)], {}):
        torch.save(held, file)
        with pytest.raises(UnreadableFileError, match="something else than tensors"):
            conversion._write(json.dumps([str(file), part]).encode())
    stored(file, a=torch.ones(1))
    with pytest.raises(UnreadableFileError, match="'a'"):
        conversion._write(json.dumps([str(file), str(file), part]).encode())


def test_files_that_are_too_large_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "ReaderProcess", None)
    stored(tmp_path / "pytorch_model.bin", a=torch.ones(1000))
    with pytest.raises(FileTooLargeError) as raised:
        convert(tmp_path, most_bytes=1000)
    assert raised.value.limit == 1000


def test_its_process_has_neither_network_nor_programs() -> None:
    lines = (
        "import socket, subprocess, sys",
        "from music_evals.editing.conversion import _refuse",
        "sys.addaudithook(_refuse)",
        "for call in (lambda: socket.socket(), lambda: subprocess.run(['true']), lambda: __import__('os').fork()):",
        "    try: call()",
        "    except PermissionError: print('refused')",
    )
    told = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["refused"] * 3


@pytest.mark.parametrize(
    "key",
    ["text_model.embeddings.position_ids", "position_ids", "layers.0.blocks.1.attention.self.relative_position_index",
     "h.0.attn.masked_bias", "transformer.h.11.attn.bias"],
)  # fmt: skip
def test_derived_buffers_are_no_tensors_too_many(key: str) -> None:
    check_loading_info("a folder", "a model", {"missing_keys": [], "unexpected_keys": {key}, "error_msgs": []}, "")


@pytest.mark.parametrize(
    ("what", "key"),
    [("unexpected_keys", "h.0.attn.c_attn.bias"), ("unexpected_keys", "my_position_ids"),
     ("unexpected_keys", "position_ids.weight"), ("missing_keys", "h.0.attn.bias"),
     ("mismatched_keys", ("position_ids", (1, 2), (1, 3)))],
)  # fmt: skip
def test_any_other_tensor_is(what: str, key: Any) -> None:
    with pytest.raises(ModelUnavailableError, match="not those of a model"):
        check_loading_info("a folder", "a model", {what: [key]}, "")
