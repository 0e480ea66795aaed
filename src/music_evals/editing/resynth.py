"""The codec of a system alone: what the best edit could score that the system can express."""

from __future__ import annotations

import os
from typing import Any, Final

from music_evals.annotations import EditorInfo, EditRequest, Weights
from music_evals.editing.alignment import first_channel
from music_evals.editing.audioldm2 import SAMPLE_RATE, AudioLDM2
from music_evals.editing.conversion import check_loading_info, hub_options, loading, without_weights
from music_evals.editing.memory import codec_bytes, weight_bytes
from music_evals.editing.system import Edited, Editor, Seeds
from music_evals.errors import UnknownNameError, importing

__all__ = ["CODECS", "Resynth"]

SYSTEMS = {"resynth": "Resynth"}

CODECS: Final = {
    "encodec": ("facebook/encodec_32khz", "CC-BY-NC-4.0"),
    "audioldm2": ("cvssp/audioldm2-music", "CC-BY-NC-SA-4.0"),
}
"""Codec -> a repository of it and the licence of its weights: that of the MusicGen family, and that of ZETA."""


class Resynth(Editor):
    """Encodes the source and decodes it again by one of `CODECS`; a control, whatever the instruction asks.

    The model is a `transformers.EncodecModel`, or the parts of AudioLDM 2. `from_pretrained` loads it; without one it
    is a `ModelUnavailableError`.
    """

    def __init__(self, model: Any = None, *, codec: str = "encodec", weights: Weights | None = None) -> None:
        if codec not in CODECS:
            raise UnknownNameError("codec", codec, CODECS)
        if model is None:
            where, licence = CODECS[codec]
            raise without_weights("resynth", "its codec", where, licence)
        self._model, self._codec, self._weights = model, codec, weights

    @classmethod
    def from_pretrained(
        cls, source: str | os.PathLike[str], *, revision: str | None = None, device: str = "cpu", codec: str = "encodec"
    ) -> Resynth:
        """Load a codec from a folder, or from the Hub at a commit, in float32."""
        if codec not in CODECS:
            raise UnknownNameError("codec", codec, CODECS)
        licence = CODECS[codec][1]
        if codec == "audioldm2":
            model: Any = AudioLDM2.from_pretrained(source, revision=revision, device=device, licence=licence)
        else:
            options = hub_options(source, revision)
            with importing("editing", "EnCodec"):
                from transformers import EncodecModel
            with loading("EnCodec", source, "config.json and the weights as safetensors", licence):
                model, loading_info = EncodecModel.from_pretrained(
                    os.fspath(source), use_safetensors=True, output_loading_info=True, **options
                )
            check_loading_info(str(source), "EnCodec", loading_info, licence)
            model = model.eval().to(device)
        return cls(model, codec=codec, weights=Weights(os.fspath(source), revision or "", licence))

    def memory(self, seconds: float) -> tuple[int, int]:
        """Return the bytes of the weights, and about how many an edit takes besides."""
        if self._codec == "audioldm2":
            n_bytes: tuple[int, int] = self._model.memory(seconds)
            return n_bytes
        return weight_bytes(self._model), codec_bytes(self._model.config, seconds)

    def network_calls(self, seconds: float) -> int:  # noqa: ARG002 (in one pass)
        """Return how often an edit calls the codec: to encode and to decode."""
        return 2

    @property
    def info(self) -> EditorInfo:
        """What it is, and the parameters that it was made with."""
        rate = SAMPLE_RATE if self._codec == "audioldm2" else int(self._model.config.sampling_rate)
        return EditorInfo(
            name="resynth",
            title="Codec alone",
            weights=(self._weights,) if self._weights else (),
            sample_rate=rate,
            mono=True,
            max_seconds=30.0,
            parameters={"codec": self._codec},
            control=True,
            backbone="codec",
        )

    def _edited(self, request: EditRequest, seeds: Seeds) -> Edited:  # noqa: ARG002 (nothing is drawn)
        import torch

        rate = self.info.sample_rate
        assert rate is not None  # a codec has one
        samples = first_channel(request, rate)
        with torch.no_grad():
            if self._codec == "audioldm2":
                return Edited(self._model.decode(self._model.encode(samples))[None], rate)
            wave = torch.from_numpy(samples)[None, None].to(self._model.device)
            codes = self._model.encode(wave, bandwidth=max(self._model.config.target_bandwidths))
            decoded = self._model.decode(codes.audio_codes, codes.audio_scales).audio_values
        return Edited(decoded[0].cpu().numpy(), rate)
