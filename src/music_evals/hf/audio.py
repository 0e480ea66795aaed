"""Modules that compare recordings, or scores, before and after an edit."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from music_evals.annotations import Score
from music_evals.audio.io import Audio, AudioPolicy, load_audio
from music_evals.errors import InvalidAudioError, MusicEvalsError, NoDataError, UnsupportedTypeError, located
from music_evals.hf.module import INTERVALS, PairModule
from music_evals.locations import suffix_of
from music_evals.metrics.arrays import PRESERVATION_VARIANTS
from music_evals.symbolic.encodings.items import describe, holds_only

CODEBASE = "https://github.com/Yashvishe13/Music-context-preservation-benchmark"
CITATION = """\
@misc{vishe2025musecpbench,
  title         = {{MuseCPBench}: an Empirical Study of Music Editing Methods through Music Context Preservation},
  author        = {Vishe, Yash and others},
  year          = {2025},
  eprint        = {2512.14629},
  archivePrefix = {arXiv}
}
"""
OFFERED = (
    "a path of a recording or of a score file; (samples, rate) or, as Gradio gives it, (rate, samples); a dict of "
    "array and sampling_rate, or of bytes and path, as rows of datasets; a decoder of datasets; an Audio or a Score"
)
AUDIO_INPUTS = f"""
Args:
    references: the originals. {OFFERED[0].upper()}{OFFERED[1:]}.
    predictions: the edited music in the same order, the same kinds of items; a recording is compared with a recording,
        a score with a score.
    groups: one cluster id an item; the interval is resampled by groups. Default: edits of one original are a cluster.
    variant, also the config name: "corrected" (default), "official" (the authors' code), "paper" (their text) or
        "musecpeval-0.3" (the authors' package).
    companions: names of auxiliary metrics, or True for all; none by default.
    backends: a dict, feature -> extractor, where it is not the variant's.
    store: folder where features are kept from one call to the next.
    policy: an AudioPolicy, how recordings are decoded, where it is not the variant's.
    options: a dict, metric -> keyword arguments of its function.
    failures: "raise" (default), or "record": what cannot be read or computed is NaN and told in "per_item".
{INTERVALS}.
"""
_SCORE, _AUDIO = "score:", "audio:"
_FACTS = ("sample_rate", "silent", "cancelled", "read_by")  # of an `Audio`, which its samples do not tell


class AudioMetric(PairModule):
    """Base of the modules that compare music before and after an edit.

    Both features are strings: paths. Samples in memory are written to float WAV files in a private folder, which goes
    when they are computed or dropped; scores are carried as text. Whether a file can be read shows when it is computed.
    """

    kind = "edits"
    variants: ClassVar[tuple[str, ...]] = PRESERVATION_VARIANTS
    paper, authors_code, arguments = CITATION, CODEBASE, AUDIO_INPUTS

    spool: Path | None = None
    """Private folder of samples, while some are being added; it goes with the instance at the latest."""

    _remove_spool: Callable[[], object] | None = None

    def _encode(self, name: str, index: int, item: Any) -> str:
        """Return one item as text: its path, or what `read_sources` turns back into it."""
        try:
            if isinstance(item, str | os.PathLike):
                return _existing(Path(item))
            if isinstance(item, Score):
                return _SCORE + json.dumps(item.to_dict())
            if isinstance(item, Audio):
                return _AUDIO + self._keep(_npz(item), ".npz")
            if isinstance(item, Mapping):
                return self._row_as_text(item)
            if callable(getattr(item, "get_all_samples", None)):  # torchcodec's decoder, as datasets hands it out
                decoded = item.get_all_samples()
                return self._spool_samples(np.asarray(decoded.data), decoded.sample_rate)
            if isinstance(item, tuple | list) and len(item) == 2:
                rates = [_is_rate(part) for part in item]
                if sum(rates) == 1:
                    samples, rate = item if rates[1] else reversed(item)
                    return self._spool_samples(samples, rate)
            raise UnsupportedTypeError(f"expected {OFFERED}; got {describe(item)}")
        except MusicEvalsError as error:
            raise located(error, f"{name}[{index}]") from error

    def _row_as_text(self, row: Mapping[str, Any]) -> str:
        """Read a row of an audio column: samples and rate, or bytes, or a path."""
        if row.get("array") is not None and row.get("sampling_rate") is not None:
            return self._spool_samples(row["array"], row["sampling_rate"])
        if isinstance(row.get("bytes"), bytes):
            return self._keep(row["bytes"], suffix_of(row["bytes"], row.get("path")))
        if isinstance(row.get("path"), str | os.PathLike):
            return _existing(Path(row["path"]))
        raise UnsupportedTypeError(
            f"a row has an array and its sampling_rate, or bytes, or a path; got the keys {', '.join(map(str, row))}"
        )

    def _spool_samples(self, samples: Any, rate: Any) -> str:
        """Write samples as they come, mixed down but neither resampled nor scaled."""
        if not _is_rate(rate):
            raise InvalidAudioError(f"expected a sample rate in whole Hz, got {rate!r}")
        if not hasattr(samples, "__array__") and not holds_only(samples, float):  # tensors and arrays; JSON has lists
            raise UnsupportedTypeError(f"expected samples in an array, got {describe(samples)}")
        audio = load_audio(
            np.asarray(samples), rate=int(rate), policy=AudioPolicy(sample_rate=int(rate), peak_normalise=False)
        )
        import soundfile

        buffer = io.BytesIO()
        soundfile.write(buffer, audio.samples, audio.sample_rate, format="WAV", subtype="FLOAT")
        return self._keep(buffer.getvalue(), ".wav")

    def _keep(self, content: bytes, suffix: str) -> str:
        """Write bytes into the private folder, once for equal content, and return the path."""
        if self.num_process > 1:
            raise UnsupportedTypeError(
                "several processes share files only: write the samples to files, add their paths"
            )
        if self.spool is None:
            self.spool = Path(tempfile.mkdtemp(prefix="music_evals_"))
            self._remove_spool = weakref.finalize(self, shutil.rmtree, self.spool, ignore_errors=True)
        path = self.spool / f"{hashlib.sha256(content).hexdigest()}{suffix}"
        if not path.exists():
            path.write_bytes(content)
        return str(path)

    def _release(self) -> None:
        if self._remove_spool is not None:
            self._remove_spool()
        self.spool = self._remove_spool = None


def read_sources(texts: Sequence[str]) -> list[str | Audio | Score]:
    """Return the paths, recordings and scores behind the strings that an `AudioMetric` keeps."""
    sources: list[str | Audio | Score] = []
    for text in texts:
        if text.startswith(_SCORE):
            sources.append(Score.from_dict(json.loads(text.removeprefix(_SCORE))))
        elif text.startswith(_AUDIO):
            with np.load(text.removeprefix(_AUDIO), allow_pickle=False) as held:
                about = json.loads(str(held["about"]))
                facts = {name: about[name] for name in _FACTS}
                sources.append(Audio(held["samples"], policy=AudioPolicy(**about["policy"]), **facts))
        else:
            sources.append(text)
    return sources


def _existing(path: Path) -> str:
    if not path.exists():
        raise NoDataError(f"{path}: no such file; check the path")
    return str(path.absolute())  # compute may be called from another folder; and no path starts like a score


def _is_rate(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _npz(audio: Audio) -> bytes:
    about = {name: getattr(audio, name) for name in _FACTS}
    about["policy"] = dataclasses.asdict(audio.policy)
    buffer = io.BytesIO()
    np.savez(buffer, samples=audio.samples, about=json.dumps(about))
    return buffer.getvalue()
