"""Models as files: a network with its config.json and its weights as safetensors, whole or not at all."""

# Annotations stay real objects here: the Hub mixin reads the types of a class that inherits from it.
import abc
import contextlib
import dataclasses
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from huggingface_hub import PyTorchModelHubMixin
from torch import Tensor, nn

from music_evals.errors import (
    FileTooLargeError,
    InvalidInputError,
    ModelUnavailableError,
    MusicEvalsError,
    NoDataError,
    OutputError,
    UnknownNameError,
    UnreadableFileError,
    hub_errors,
)
from music_evals.files import check_no_pointer_in, parse_json, write_atomically, written_whole
from music_evals.protocols.settings import check_rules, check_types
from music_evals.repositories import MODELS, find_repository

MOST_SIZE, MOST_LAYERS, MOST_WEIGHTS, MOST_CONFIG_BYTES = 2**16, 256, 2**29, 2**20
"""Of what a config.json may describe; the largest published network here, SketchNet, has 1.7e8 weights."""
_LARGE = 2048


class SavedNetwork(nn.Module, PyTorchModelHubMixin, abc.ABC, library_name="music_evals", license="apache-2.0"):
    """Base of networks with weights; the Hub mixin reads the constructor's signature, this class builds the config."""

    config: Any
    config_class: ClassVar[type[Any]]

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = self.config_class() if config is None else config
        if not isinstance(self.config, self.config_class):
            raise InvalidInputError(f"config must be a {self.config_class.__name__}, got {self.config!r}")
        check_sizes(self.config)

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
        """Load a network from a folder or from the Hub.

        Parameters
        ----------
        pretrained_model_name_or_path
            Folder, whose files are checked before any is read; the name of a model of the package; or an id on the Hub.
        options
            Of the class, such as `decoding`; and `revision`, `token`, `cache_dir` ... of `huggingface_hub`.

        Raises
        ------
        UnknownNameError
            There is no such folder, and it has not the form of an id; or a decoding that does not exist.
        NoDataError
            The folder holds no weights or no config.
        UnreadableFileError
            Weights or config are damaged, or do not fit each other or this class.
        ModelUnavailableError
            Not to be had from the Hub.
        InvalidInputError
            A setting outside its range.
        """
        place, local = find_repository(os.fspath(pretrained_model_name_or_path), MODELS, "model")
        if local:  # all is checked before any of it is read
            _check_folder(Path(place), cls.config_class)
        if not isinstance(options.get("config"), cls.config_class | None):
            raise InvalidInputError(f"config must be a {cls.config_class.__name__}, got {options['config']!r}")
        with fetching(place):
            model: Self = super().from_pretrained(place, **options)
        return model

    @classmethod
    def _from_pretrained(cls, *, model_id: str, strict: bool = True, **options: Any) -> Self:
        """Load the weights as float32; unlike the mixin's own, every tensor and setting must be known and there."""
        from safetensors import SafetensorError

        try:
            config = options.get("config")
            if isinstance(config, Mapping):  # the mixin reads classes from signatures alone
                fields = {field.name for field in dataclasses.fields(cls.config_class)}
                config = cls.config_class(**{name: value for name, value in config.items() if name in fields})
                options["config"] = config
            if dataclasses.is_dataclass(config):
                check_sizes(config)
                sizes = {name: value for name, value in vars(config).items() if isinstance(value, int)}
                deep = any(size > 16 for name, size in sizes.items() if "layers" in name)
                if deep or max(sizes.values(), default=0) > _LARGE:
                    with torch.device("meta"):  # takes seconds to begin with, so that it is not done for every network
                        n_weights = sum(weight.numel() for weight in cls(config).parameters())
                    if n_weights > MOST_WEIGHTS:
                        raise InvalidInputError(
                            f"its config.json describes {n_weights} weights, more than {MOST_WEIGHTS}"
                        )
            with contextlib.redirect_stdout(io.StringIO()):  # the mixin prints; stdout is for data
                model: Self = super()._from_pretrained(model_id=model_id, strict=strict, **options)
        except MusicEvalsError:
            raise
        except (SafetensorError, ArithmeticError, AssertionError, RuntimeError, TypeError, ValueError) as error:
            first = " ".join(line.strip() for line in str(error).splitlines()[:2])  # PyTorch names every tensor
            raise UnreadableFileError(
                f"the weights in {model_id} do not fit its config.json, or are damaged ({first}); take both files from "
                "one training run"
            ) from error
        return model


def fill_sizes(config: Any, sizes: Mapping[str, Mapping[str, int]]) -> None:
    """Give every size of a config that is 0 the value that it has in its `size`."""
    check_types(config)
    if config.size not in sizes:
        raise UnknownNameError("size", config.size, sizes)
    for name, value in sizes[config.size].items():
        if getattr(config, name) == 0:
            object.__setattr__(config, name, value)


def check_config(
    config: Any, *, at_least_one: Iterable[str], shares: Iterable[str] = (), probabilities: Iterable[str] = ()
) -> None:
    """Check types, the type of model, fields of at least 1, shares in [0, 1) and probabilities in [0, 1]."""
    check_types(config)
    kind = type(config).__dataclass_fields__["model_type"].default
    if config.model_type != kind:
        raise InvalidInputError(
            f"model_type must be {kind!r}, got {config.model_type!r}; load the model with the class of its type"
        )
    rules = {f"{name} must be at least 1": getattr(config, name) >= 1 for name in at_least_one}
    rules |= {f"{name} must lie in [0, 1)": 0 <= getattr(config, name) < 1 for name in shares}
    rules |= {f"{name} must lie in [0, 1]": 0 <= getattr(config, name) <= 1 for name in probabilities}
    check_rules(config, rules)


def check_sizes(config: Any) -> None:
    """Raise where a whole number in a config is beyond every network, before PyTorch is asked for it."""
    for field in dataclasses.fields(config):
        value, most = getattr(config, field.name), MOST_LAYERS if field.name.endswith("layers") else MOST_SIZE
        if isinstance(value, int) and abs(value) > most:
            raise InvalidInputError(f"{field.name} must be at most {most}, got {value}")


@contextlib.contextmanager
def fetching(place: str) -> Iterator[None]:
    """Turn what the Hub raises for an id into a `ModelUnavailableError`; nothing changes for a folder."""
    try:
        yield
    except MusicEvalsError:
        raise
    except hub_errors() as error:
        if os.path.isdir(place):  # noqa: PTH112
            raise
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ModelUnavailableError(
            f"there is no folder {place}, and it cannot be fetched from the Hub: {reason}; check name and network"
        ) from error


def _check_folder(folder: Path, config_class: type[Any]) -> None:
    """Raise where weights are missing, or the config has settings that this version does not know."""
    if not (folder / "model.safetensors").exists():
        raise NoDataError(f"{folder} holds no model.safetensors; train it first: music-evals train {folder}/train.yaml")
    config = folder / "config.json"
    if not config.exists():
        raise NoDataError(f"{folder} holds no config.json; it lies beside model.safetensors where training wrote both")
    check_no_pointer_in(folder / "model.safetensors")
    check_no_pointer_in(config)
    if config.stat().st_size > MOST_CONFIG_BYTES:
        raise FileTooLargeError(f"{config}: more than {MOST_CONFIG_BYTES} bytes", unit="bytes", limit=MOST_CONFIG_BYTES)
    settings = parse_json(config.read_bytes(), str(config), "what training wrote beside model.safetensors")
    if not isinstance(settings, dict):
        raise UnreadableFileError(f"{config} holds no settings by name; expected what save_pretrained wrote")
    unknown = set(settings) - {field.name for field in dataclasses.fields(config_class)}
    if unknown:
        raise UnreadableFileError(
            f"{config} has the settings {', '.join(sorted(unknown))}, which {config_class.__name__} does not know: "
            "it is of another model or of another version of music_evals; use those, or train the model again"
        )


def save_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write tensors to a file whole or not at all; the folder is made. Raises `OutputError`."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    copies = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with written_whole(path, parents=True) as part:
        try:
            save_file(copies, part, metadata=dict(metadata))
        except SafetensorError as error:
            raise OutputError(
                f"cannot write {path}: {error}; make room or allow writing, and run again: it goes on"
            ) from error
