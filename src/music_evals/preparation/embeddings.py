"""The step `embeddings`: one vector a recording, by a music encoder that the user names."""

from __future__ import annotations

import functools
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.inputs import model_type_of, split_model
from music_evals.errors import InvalidInputError, NoDataError
from music_evals.files import written_whole
from music_evals.preparation.contract import Inputs
from music_evals.protocols import MUSIC_ENCODER_TYPES, MUSIC_ENCODERS, MusicEncoder, load_plugin

OPTIONS: Final = ("encoder", "device", "trust_remote_code")


def left_out(options: Mapping[str, Any]) -> str:
    """Return why no recording is embedded unless an encoder is named: none is better than any other in silence."""
    if options["encoder"]:
        return ""
    return "no `encoder` is named: mert-95m is of the paper's family, audio-statistics needs no weights"


def about(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return which encoder it is, at which state; the device changes no more than last digits."""
    return {"encoder": dict(_load(options).about)}


def embed(inputs: Inputs) -> dict[str, Any]:
    """Return the vector of a recording, as the bytes of an .npy file."""
    vector = _load(inputs.options).features(inputs.files["audio"])
    file = io.BytesIO()
    np.save(file, np.asarray(vector, dtype="<f4"), allow_pickle=False)
    return {"vector": file.getvalue(), "size": len(vector)}


def read_vector(path: Path) -> npt.NDArray[np.float32]:
    """Return a vector that `embed` made."""
    vector: npt.NDArray[np.float32] = np.load(path, allow_pickle=False)
    return vector


def write_embeddings(songs: Sequence[str], places: Sequence[Path], path: Path) -> None:
    """Write all vectors into one Parquet file: song and embedding, float32, a row a song."""
    import pyarrow as pa
    from pyarrow import parquet

    size = 1024  # songs that are held at once
    schema = pa.schema({"song": pa.string(), "embedding": pa.list_(pa.float32())})
    with written_whole(path, parents=True) as part, parquet.ParquetWriter(part, schema) as writer:
        for start in range(0, len(songs), size):
            rows = slice(start, start + size)
            vectors = [read_vector(place) for place in places[rows]]
            writer.write_table(pa.table({"song": songs[rows], "embedding": vectors}, schema=schema))


def _load(options: Mapping[str, Any]) -> MusicEncoder:
    given = options["encoder"]
    if not given:
        raise NoDataError(f"the step embeddings needs an `encoder`: one of {', '.join(MUSIC_ENCODERS)}, or a folder")
    return _loaded(given, options["device"], bool(options["trust_remote_code"]))


@functools.lru_cache(maxsize=1)
def _loaded(given: str, device: str | None, trusted: bool) -> MusicEncoder:  # noqa: FBT001  # a key of the cache
    name, source, revision = split_model(given)
    model = source if name is not None or Path(source).is_dir() else None
    if name is None and model is None:
        name = source
    elif name is None:  # a folder says what it is by the model type in its configuration
        kind = model_type_of(Path(source), MUSIC_ENCODER_TYPES)
        if kind not in MUSIC_ENCODER_TYPES:
            raise InvalidInputError(
                f"{source} is a model of the type {kind!r}, which is none of {', '.join(MUSIC_ENCODER_TYPES)}; say "
                f"with NAME=FOLDER which encoder it is for: {', '.join(MUSIC_ENCODERS)}"
            )
        name = MUSIC_ENCODER_TYPES[kind]
    make = load_plugin(MUSIC_ENCODERS, name, "music encoder")
    encoder: MusicEncoder = make(name, model=model, revision=revision, device=device, trust_remote_code=trusted)
    return encoder
