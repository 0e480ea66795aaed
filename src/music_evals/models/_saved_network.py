"""A network with a config, in files: config.json, and its weights as safetensors in half precision."""

# Annotations stay real objects here: the Hub mixin reads the types of a class that inherits from it.
import abc
import contextlib
import dataclasses
import io
import json
import os
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from huggingface_hub import PyTorchModelHubMixin
from torch import nn

from music_evals.errors import NoDataError, UnreadableFileError
from music_evals.files import write_atomically

__all__ = ["SavedNetwork"]


class SavedNetwork(nn.Module, PyTorchModelHubMixin, abc.ABC, library_name="music_evals", license="apache-2.0"):
    """Base of networks with weights; a subclass has a constructor of its own, whose signature the Hub mixin reads."""

    config: Any
    config_class: ClassVar[type[Any]]

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = self.config_class() if config is None else config

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def _save_pretrained(self, save_directory: Path) -> None:
        """Write config.json and the weights in half precision; each file whole or not at all."""
        from safetensors.torch import save

        weights = {key: value.detach().cpu().half().contiguous() for key, value in self.state_dict().items()}
        write_atomically(save_directory / "model.safetensors", save(weights, metadata={"format": "pt"}))
        config = json.dumps(dataclasses.asdict(self.config), indent=2, sort_keys=True) + "\n"
        write_atomically(save_directory / "config.json", config.encode())

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | Path, **options: Any) -> Self:
        """Load a network from a folder or from the Hub; a folder's files are checked before any is read."""
        if os.path.isdir(pretrained_model_name_or_path):  # noqa: PTH112
            _check_folder(Path(pretrained_model_name_or_path), cls.config_class)
        model: Self = super().from_pretrained(pretrained_model_name_or_path, **options)
        return model

    @classmethod
    def _from_pretrained(cls, *, model_id: str, strict: bool = True, **options: Any) -> Self:
        """Load the weights as float32; unlike the mixin's own, every tensor and setting must be known and there."""
        from safetensors import SafetensorError

        try:
            with contextlib.redirect_stdout(io.StringIO()):  # the mixin prints; stdout is for data
                model: Self = super()._from_pretrained(model_id=model_id, strict=strict, **options)
        except (SafetensorError, RuntimeError) as error:
            first = " ".join(line.strip() for line in str(error).splitlines()[:2])  # PyTorch names every tensor
            raise UnreadableFileError(
                f"the weights in {model_id} do not fit its config.json, or are damaged ({first}); take both files from "
                "one training run"
            ) from error
        return model


def _check_folder(folder: Path, config_class: type[Any]) -> None:
    """Raise where weights are missing, or the config has settings that this version does not know."""
    if not (folder / "model.safetensors").exists():
        raise NoDataError(f"{folder} holds no model.safetensors; train it first: music-evals train {folder}/train.yaml")
    config = folder / "config.json"
    if not config.exists():
        raise NoDataError(f"{folder} holds no config.json; it lies beside model.safetensors where training wrote both")
    try:
        settings = json.loads(config.read_bytes())
    except ValueError as error:
        raise UnreadableFileError(
            f"{config} is not JSON ({error}); take it and model.safetensors from one training run"
        ) from error
    if not isinstance(settings, dict):
        raise UnreadableFileError(f"{config} holds no settings by name; expected what save_pretrained wrote")
    unknown = set(settings) - {field.name for field in dataclasses.fields(config_class)}
    if unknown:
        raise UnreadableFileError(
            f"{config} has the settings {', '.join(sorted(unknown))}, which {config_class.__name__} does not know: "
            "it is of another model or of another version of music_evals; use those, or train the model again"
        )
