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
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from music_evals.errors import InvalidAudioError, InvalidInputError, UnknownNameError
from music_evals.files import Store, cache_folder
from music_evals.lyrics.model_files import choose_device
from music_evals.models.encoders.audio import LOUDNESS, Extraction, Feature, Source, content_hash, prepare
from music_evals.models.encoders.networks import Encodec, Origin, Transformer, load_data2vec, load_encodec, load_mert
from music_evals.models.encoders.precomputed import JUKEBOX_SIZE, PrecomputedFeatures

__all__ = [
    "ENCODERS",
    "POOLINGS",
    "EncoderInfo",
    "EncoderSettings",
    "MusicEncoder",
    "load_music_encoder",
    "make_encoder",
]

POOLINGS = ("mean", "muchin")
"""Of EnCodec; see `EncoderSettings`."""

_VERSION = 1  # of the numbers; goes up whenever they change, so that what is stored is not found any more
_CACHE = "music_features"  # folder in the cache of the user
_LITTLE_ENDIAN = np.dtype("<f4")


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
        What comes later is ignored; None reads all.
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
    pad
        Of MERT: True fills the last window with silence, as the released code does, which changes the vectors of short
        clips; False encodes it as long as it is.
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
    pad: bool = True
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
            "pad": {"mert"},
            "bandwidth": {"encodec"},
            "pooling": {"encodec"},
            "resample": {"encodec"},
            "size": {"precomputed"},
        }
        for field in dataclasses.fields(self):
            if kind not in owners.get(field.name, {kind}) and getattr(self, field.name) != field.default:
                raise InvalidInputError(f"the encoder {self.name!r} has no option {field.name!r}")

    @property
    def info(self) -> EncoderInfo:
        """What is fixed of the named encoder."""
        return ENCODERS[self.name]


class MusicEncoder(Extraction):
    """A network that turns recordings into vectors, and remembers them in files.

    Parameters
    ----------
    settings
        What decides the numbers.
    network
        A loaded `Transformer` or `Encodec`.
    identity
        What identifies its files: a commit on the Hub, or a hash of a folder; after a plus sign that of the feature
        extractor, where it comes from elsewhere.
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
        cache: Store | None,
        batch_size: int | None = None,
    ) -> None:
        self.settings, self.network, self.cache = settings, network, cache
        self.batch_size = settings.info.batch_size if batch_size is None else batch_size
        if self.batch_size < 1:
            raise InvalidInputError(f"batch_size must be at least 1, got {batch_size}")
        self.name = settings.name
        self.size = network.size
        values = dataclasses.asdict(settings)
        del values["size"]
        if settings.pad:
            del values["pad"]  # features that were stored before there was a choice stay found
        values["model"] = settings.info.model if settings.model is None else settings.model
        if identity.startswith("sha256-"):
            values["model"] = ""  # a folder may move
        self.about: Mapping[str, Any] = {**values, "identity": identity, "version": _VERSION}

    def features(self, source: Source) -> Feature:
        """Return the vector of a recording, float32, shape (size,), from the store where it is there.

        The source is a file, its bytes, or ``{"bytes", "path"}`` or ``{"array", "sampling_rate"}`` of a data set.

        Raises
        ------
        InvalidAudioError
            Silent, too short, or of more channels than the encoder takes.
        NoDataError, UnreadableFileError, FileTooLargeError, UnsupportedTypeError
            Not a recording.
        """
        if self.cache is None:
            return self._encode(source)
        key = {**self.about, "recording": content_hash(source)}
        stored = self.cache.get(key)
        if stored is not None:
            return np.frombuffer(stored, _LITTLE_ENDIAN).astype(np.float32)
        feature = self._encode(source)
        self.cache.put(key, feature.astype(_LITTLE_ENDIAN).tobytes())
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
        A layer, window, bandwidth or pooling that the model does not have, or a device that is not there.
    """
    if isinstance(settings, str):
        settings = EncoderSettings(settings)
    if settings.info.kind == "precomputed":
        return PrecomputedFeatures(settings.name, settings.info.size if settings.size is None else settings.size)
    place, info = choose_device(device), settings.info
    model = settings.model or info.model
    own = info.processor if settings.model is None else ""
    origin = Origin(model, settings.revision, settings.processor or own or model, trust_remote_code)
    network: Transformer | Encodec
    if info.kind == "encodec":
        codec, identity = load_encodec(origin)
        network = Encodec(codec, bandwidth=settings.bandwidth, pooling=settings.pooling)
    else:
        loaded, extractor, identity = load_mert(origin) if info.kind == "mert" else load_data2vec(origin)
        window = info.window_seconds if settings.window_seconds is None else settings.window_seconds
        network = Transformer(loaded, extractor, layer=settings.layer, window_seconds=window, pad=settings.pad)
    network.model.to(place)
    folder = (cache_folder(_CACHE) if cache else None) if isinstance(cache, bool) else cache
    store = None if folder is None else Store(folder)
    return MusicEncoder(settings, network, identity, cache=store, batch_size=batch_size)


def make_encoder(
    name: str,
    *,
    model: str | None = None,
    revision: str | None = None,
    device: str | None = None,
    trust_remote_code: bool = False,
) -> MusicEncoder | PrecomputedFeatures:
    """Load an encoder as `load_music_encoder` does, by what the registry of `protocols.MUSIC_ENCODERS` hands over."""
    settings = EncoderSettings(name, model=model, revision=revision)
    return load_music_encoder(settings, device=device, trust_remote_code=trust_remote_code)
