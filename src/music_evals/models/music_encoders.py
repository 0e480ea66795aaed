"""Music encoders: a recording in, one vector out, as MuChin (section 3.3, Appendix H) uses them.

=============  ==========================================  ============================================  ======
name           model                                       what is averaged over the song                length
=============  ==========================================  ============================================  ======
``mert-95m``   `m-a-p/MERT-v1-95M`, mono, 24 kHz           last hidden state, 75 Hz, windows of 60 s       768
``mert-330m``  `m-a-p/MERT-v1-330M`, mono, 24 kHz          last hidden state, 75 Hz, windows of 60 s      1024
``music2vec``  `m-a-p/music2vec-v1`, mono, 16 kHz          last hidden state, 50 Hz, first 480 s at once   768
``encodec``    `facebook/encodec_48khz`, stereo, 48 kHz    quantised latents at 12 kbit/s, 150 Hz          128
``jukebox``    OpenAI's 5B prior up to layer 53            made elsewhere and read from files             4800
=============  ==========================================  ============================================  ======

Every recording is first brought to -12 LUFS. The last hidden state is that of layer 12, 24 and 12. Another model of the
same class, by id or folder, takes the place of the named one with ``model=``.

The released code (https://github.com/CarlWangChina/MuChin, `und_eval`) differs in EnCodec: it indexes the codes wrongly
(``pooling="muchin"``, 19,200 numbers) and hands over recordings at whatever rate they have (``resample=False``).
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sized
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch

from music_evals.errors import (
    InvalidAudioError,
    InvalidInputError,
    MusicEvalsError,
    NoDataError,
    UnknownNameError,
    UnreadableFileError,
    located,
)
from music_evals.models._encoder_audio import LOUDNESS, Source, content_hash, prepare
from music_evals.models._encoder_cache import feature_path, read_feature, write_feature
from music_evals.models._encoder_networks import (
    Encodec,
    Origin,
    Transformer,
    load_data2vec,
    load_encodec,
    load_mert,
)
from music_evals.symbolic.output import cache_folder, write_atomically

__all__ = [
    "ENCODERS",
    "JUKEBOX_SIZE",
    "POOLINGS",
    "EncoderInfo",
    "EncoderSettings",
    "Extractor",
    "MusicEncoder",
    "PrecomputedFeatures",
    "audio_sources",
    "load_music_encoder",
    "read_features",
    "write_features",
]

Feature = npt.NDArray[np.float32]

POOLINGS = ("mean", "muchin")
"""Of EnCodec; see `EncoderSettings`."""

JUKEBOX_SIZE: Final = 4800

_VERSION = 1  # of the numbers; goes up whenever they change, so that what is stored is not found any more
_CACHE = "music_features"  # folder in the cache of the user


class EncoderInfo(NamedTuple):
    """What is fixed of a named encoder.

    Attributes
    ----------
    kind
        ``"mert"``, ``"data2vec"``, ``"encodec"`` or ``"precomputed"``.
    model, processor
        Ids on the Hub; the processor is empty where it is that of the model.
    size
        Length of the vector.
    window_seconds
        Recordings are read in windows of this length; None is in one pass.
    max_seconds
        What comes later is not heard; None hears all.
    batch_size
        Windows that are encoded together. It changes the result in its last digits at most.

    """

    kind: str
    model: str
    processor: str
    size: int
    window_seconds: float | None
    max_seconds: float | None
    batch_size: int


ENCODERS: Final[Mapping[str, EncoderInfo]] = MappingProxyType(
    {
        "mert-95m": EncoderInfo("mert", "m-a-p/MERT-v1-95M", "", 768, 60.0, None, 2),
        "mert-330m": EncoderInfo("mert", "m-a-p/MERT-v1-330M", "", 1024, 60.0, None, 2),
        "music2vec": EncoderInfo(
            "data2vec", "m-a-p/music2vec-v1", "facebook/data2vec-audio-base-960h", 768, None, 480.0, 1
        ),
        "encodec": EncoderInfo("encodec", "facebook/encodec_48khz", "", 128, None, None, 32),
        "jukebox": EncoderInfo("precomputed", "", "", JUKEBOX_SIZE, None, None, 1),
    }
)
"""Name -> encoder, in the order of the table above."""


@dataclasses.dataclass(frozen=True)
class EncoderSettings:
    """All that decides the numbers besides the recording.

    Parameters
    ----------
    name
        One of `ENCODERS`.
    model
        Another model of the same class: an id on the Hub, or a folder. None is the named one.
    revision
        Branch, tag or commit on the Hub; None is the newest.
    processor
        Where the settings of the feature extractor come from; None is as in `ENCODERS`, or the other `model` itself.
    layer
        Hidden state of MERT and music2vec, 0 to the number of layers; None is the last, which MuChin uses.
    window_seconds
        Of MERT; None is 60.
    bandwidth
        Of EnCodec, in kbit/s.
    pooling
        Of EnCodec: ``"mean"`` over time of the decoded codes, or ``"muchin"``, the indexing of the released code.
    resample
        Of EnCodec: False hands over recordings at whatever rate they have, as the released code does.
    loudness
        In LUFS; None leaves recordings as loud as they are.
    size
        Of precomputed features: length of the vectors, where it is not that of Jukebox.

    Raises
    ------
    UnknownNameError
        An encoder or a pooling that does not exist.
    InvalidInputError
        An option that this encoder does not have.

    """

    name: str
    model: str | None = None
    revision: str | None = None
    processor: str | None = None
    layer: int | None = None
    window_seconds: float | None = None
    bandwidth: float = 12.0
    pooling: str = "mean"
    resample: bool = True
    loudness: float | None = LOUDNESS
    size: int | None = None

    def __post_init__(self) -> None:
        if self.name not in ENCODERS:
            raise UnknownNameError("encoder", str(self.name), ENCODERS)
        if self.pooling not in POOLINGS:
            raise UnknownNameError("pooling", str(self.pooling), POOLINGS)
        kind = ENCODERS[self.name].kind
        owners = {
            "layer": {"mert", "data2vec"},
            "window_seconds": {"mert"},
            "bandwidth": {"encodec"},
            "pooling": {"encodec"},
            "resample": {"encodec"},
            "size": {"precomputed"},
        }
        for field in dataclasses.fields(self):
            if kind not in owners.get(field.name, {kind}) and getattr(self, field.name) != field.default:
                msg = f"the encoder {self.name!r} has no option {field.name!r}"
                raise InvalidInputError(msg)

    @property
    def info(self) -> EncoderInfo:
        """What is fixed of the named encoder."""
        return ENCODERS[self.name]

    def changed(self) -> dict[str, Any]:
        """Return the name and every other option that is not at its default, for a config.json."""
        values = {
            f.name: getattr(self, f.name) for f in dataclasses.fields(self)[1:] if getattr(self, f.name) != f.default
        }
        return {"name": self.name, **values}


class Extractor(Protocol):
    """Anything that turns a recording into one vector.

    Attributes
    ----------
    name
        One of `ENCODERS`.
    size
        Length of the vector.
    about
        All that decides the numbers besides the recording, for records and keys.

    """

    name: str
    size: int
    about: Mapping[str, Any]

    def features(self, source: Source) -> Feature:
        """Return float32, shape (size,)."""
        ...

    def extract(
        self, sources: Iterable[tuple[str, Source]], *, progress: bool = False
    ) -> Iterator[tuple[str, Feature]]:
        """Yield (id, feature) of each (id, recording)."""
        ...


class _Extraction:
    def features(self, source: Source) -> Feature:
        raise NotImplementedError

    def extract(
        self, sources: Iterable[tuple[str, Source]], *, progress: bool = False
    ) -> Iterator[tuple[str, Feature]]:
        """Yield (id, feature) of each (id, recording), one after the other: nothing is held back.

        Parameters
        ----------
        sources
            Ids and recordings, as from `audio_sources`; read as they are needed.
        progress
            Show a bar on stderr.

        Raises
        ------
        MusicEvalsError
            As `features`; the message names the id. What came before is stored: run again to go on from there.

        """
        from tqdm import tqdm

        total = len(sources) if isinstance(sources, Sized) else None
        for name, source in tqdm(sources, desc="features", unit="song", total=total, disable=not progress):
            try:
                feature = self.features(source)
            except MusicEvalsError as error:
                raise located(error, name) from error
            yield name, feature


class MusicEncoder(_Extraction):
    """A network that turns recordings into vectors, and remembers them in files.

    Parameters
    ----------
    settings
        What decides the numbers.
    network
        A loaded `Transformer` or `Encodec`.
    identity
        What identifies its weights: a commit on the Hub, or a hash of files.
    cache
        Folder of the stored features, or None for no store.
    batch_size
        Windows that are encoded together; None is as in `ENCODERS`.

    Attributes
    ----------
    name
        One of `ENCODERS`.
    size
        Length of the vector.
    about
        Settings and identity: what a stored feature is found by, besides the recording.

    """

    def __init__(
        self,
        settings: EncoderSettings,
        network: Transformer | Encodec,
        identity: str,
        *,
        cache: Path | None,
        batch_size: int | None = None,
    ) -> None:
        self.settings, self.network, self.cache = settings, network, cache
        self.batch_size = settings.info.batch_size if batch_size is None else batch_size
        if self.batch_size < 1:
            msg = f"batch_size must be at least 1, got {batch_size}"
            raise InvalidInputError(msg)
        self.name = settings.name
        self.size = network.size
        values = dataclasses.asdict(settings)
        del values["size"]
        values["model"] = settings.info.model if settings.model is None else settings.model
        if identity.startswith("sha256:"):
            values["model"] = ""  # a folder may move
        self.about: Mapping[str, Any] = {**values, "identity": identity, "version": _VERSION}

    def features(self, source: Source) -> Feature:
        """Return the vector of a recording, from the store where it is there.

        Parameters
        ----------
        source
            A file, its bytes, or ``{"bytes", "path"}`` or ``{"array", "sampling_rate"}`` of a data set.

        Returns
        -------
        numpy.ndarray
            float32, shape (size,).

        Raises
        ------
        InvalidAudioError
            Silent, too short, or of more channels than the encoder takes.
        NoDataError, UnreadableFileError, FileTooLargeError, UnsupportedTypeError
            Not a recording.
        CorruptCacheError
            Its stored feature is damaged.
        OutputError
            It cannot be stored.

        """
        if self.cache is None:
            return self._encode(source)
        key = {**self.about, "recording": content_hash(source)}
        path = feature_path(self.cache, key)
        feature = read_feature(path, key)
        if feature is None:
            feature = self._encode(source)
            write_feature(path, key, feature)
        return feature

    def _encode(self, source: Source) -> Feature:
        samples = prepare(
            source,
            rate=self.network.rate,
            channels=self.network.channels,
            loudness=self.settings.loudness,
            resample=self.settings.resample,
            max_seconds=self.settings.info.max_seconds,
        )
        feature = self.network.pool(samples, self.batch_size)
        if not np.isfinite(feature).all():
            raise InvalidAudioError("the encoder gave NaN or infinite numbers for this recording; leave it out")
        return feature


class PrecomputedFeatures(_Extraction):
    """Features that were made elsewhere: one safetensors file a song; see `write_features` for the format.

    Parameters
    ----------
    settings
        Of an encoder of the kind ``"precomputed"``.

    """

    def __init__(self, settings: EncoderSettings) -> None:
        self.name = settings.name
        self.size = settings.info.size if settings.size is None else settings.size
        self.about: Mapping[str, Any] = {"name": self.name, "size": self.size, "version": _VERSION}

    def features(self, source: Source) -> Feature:
        """Return the vector of a song: the mean over time where the file holds frames.

        Parameters
        ----------
        source
            The file, or a path that has it beside it under the same name with the ending ``.safetensors``.

        Raises
        ------
        NoDataError, UnreadableFileError
            As `read_features`.

        """
        if not isinstance(source, str | os.PathLike):
            msg = f"{self.name} features are read from files; pass a path, not {type(source).__name__}"
            raise InvalidInputError(msg)
        return read_features(Path(source).with_suffix(".safetensors"), size=self.size)


def load_music_encoder(
    settings: EncoderSettings | str,
    *,
    device: str | None = None,
    trust_remote_code: bool = False,
    cache: str | os.PathLike[str] | bool = True,
    batch_size: int | None = None,
) -> MusicEncoder | PrecomputedFeatures:
    """Load an encoder.

    Parameters
    ----------
    settings
        `EncoderSettings`, or a name out of `ENCODERS` alone.
    device
        PyTorch device; by default a GPU if there is one.
    trust_remote_code
        Whether the code in the model's repository may run here. `m-a-p/MERT-v1-95M` does without it.
    cache
        Folder of stored features; True is the user's own, False none.
    batch_size
        Windows that are encoded together; by default as in `ENCODERS`.

    Raises
    ------
    UnknownNameError
        No such encoder.
    ModelUnavailableError
        No such model, none to be had now, damaged, or one that needs code which is not trusted.
    MissingBackendError
        transformers is not installed.
    InvalidInputError
        A layer, window, bandwidth or pooling that the model does not have.

    """
    if isinstance(settings, str):
        settings = EncoderSettings(settings)
    if settings.info.kind == "precomputed":
        return PrecomputedFeatures(settings)
    network, identity = _load_network(settings, trust_remote_code=trust_remote_code)
    network.model.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    folder = (cache_folder(_CACHE) if cache else None) if isinstance(cache, bool) else Path(cache)
    return MusicEncoder(settings, network, identity, cache=folder, batch_size=batch_size)


def _load_network(settings: EncoderSettings, *, trust_remote_code: bool) -> tuple[Transformer | Encodec, str]:
    info = settings.info
    model = settings.model or info.model
    own = info.processor if settings.model is None else ""
    origin = Origin(model, settings.revision, settings.processor or own or model, trust_remote_code)
    if info.kind == "encodec":
        codec, identity = load_encodec(origin)
        return Encodec(codec, bandwidth=settings.bandwidth, pooling=settings.pooling), identity
    loader = load_mert if info.kind == "mert" else load_data2vec
    loaded, extractor, identity = loader(origin)
    window = info.window_seconds if settings.window_seconds is None else settings.window_seconds
    return Transformer(loaded, extractor, layer=settings.layer, window_seconds=window), identity


def audio_sources(rows: Any, *, column: str = "audio", id_column: str = "id") -> Iterator[tuple[str, Source]]:
    """Yield (id, recording) of the rows of a data set with a column of audio, undecoded; streamed data sets too.

    Parameters
    ----------
    rows
        A `datasets.Dataset` or `datasets.IterableDataset`.
    column, id_column
        Names of the columns.

    Raises
    ------
    UnknownNameError
        A column that is not there.

    """
    import datasets

    names = list(rows.features or {})
    for name in (column, id_column):
        if name not in names:
            raise UnknownNameError("column", name, names)
    if isinstance(rows.features[column], datasets.Audio):
        rows = rows.cast_column(column, datasets.Audio(decode=False))
    for row in rows:
        yield str(row[id_column]), row[column]


def write_features(
    folder: str | os.PathLike[str], song_id: str, features: npt.ArrayLike, *, sample_rate: int, layer: int
) -> Path:
    """Write features that were made elsewhere, in the form that `read_features` takes; return the path.

    The file is ``<folder>/<song id>.safetensors``. Its tensor ``features`` is float32, the vector itself, shape
    (size,), or frames, shape (frames, size), of which the mean is taken. Its metadata are three texts: ``song_id``,
    ``sample_rate`` (Hz, of the recording as the network heard it) and ``layer``.

    Parameters
    ----------
    folder
        Must exist.
    song_id
        Becomes the name of the file.
    features
        Shape (size,) or (frames, size).
    sample_rate, layer
        As in the metadata.

    Raises
    ------
    InvalidInputError
        Features of another shape, or not finite.
    OutputError
        The folder cannot be written to.

    """
    from safetensors.numpy import save

    array = np.ascontiguousarray(features, dtype=np.float32)
    if array.ndim not in {1, 2} or not array.size or not np.isfinite(array).all():
        msg = f"expected finite features of shape (size,) or (frames, size), got shape {array.shape}"
        raise InvalidInputError(msg)
    about = {"song_id": song_id, "sample_rate": str(sample_rate), "layer": str(layer)}
    return write_atomically(Path(folder) / f"{song_id}.safetensors", save({"features": array}, metadata=about))


def read_features(path: str | os.PathLike[str], *, size: int = JUKEBOX_SIZE) -> Feature:
    """Read features that were made elsewhere; `write_features` tells the format.

    Returns
    -------
    numpy.ndarray
        float32, shape (size,): the mean over time.

    Raises
    ------
    NoDataError
        There is no such file.
    UnreadableFileError
        Not safetensors, cut, without the metadata, of another song than its name says, or of another shape.

    """
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.is_file():
        msg = f"{path}: no such file; features of a song lie in <song id>.safetensors (see models/music_tagger)"
        raise NoDataError(msg)
    try:
        with safe_open(path, framework="numpy") as file:
            about = file.metadata() or {}
            array = np.asarray(file.get_tensor("features"), dtype=np.float32)
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        msg = (
            f"{path}: not a file of features ({error}); write it with music_evals.models.music_encoders.write_features"
        )
        raise UnreadableFileError(msg) from error
    wrong = [name for name in ("song_id", "sample_rate", "layer") if name not in about]
    if wrong or about["song_id"] != path.stem:
        what = f"lacks the metadata {', '.join(wrong)}" if wrong else f"holds the song {about['song_id']!r}"
        msg = f"{path}: {what}; name the file after its song and write it with write_features"
        raise UnreadableFileError(msg)
    if array.ndim not in {1, 2} or array.shape[-1] != size or not array.size or not np.isfinite(array).all():
        msg = f"{path}: expected finite features of shape ({size},) or (frames, {size}), got {array.shape}"
        raise UnreadableFileError(msg)
    return array if array.ndim == 1 else array.mean(axis=0, dtype=np.float64).astype(np.float32)
