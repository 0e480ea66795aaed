"""How much memory edits need, worked out before anything is computed, and how much a device has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, NamedTuple

from music_evals.errors import NotEnoughMemoryError

__all__ = [
    "MemoryPlan", "audioldm2_bytes", "check_stored", "codec_bytes", "free_bytes", "musicgen_bytes", "weight_bytes",
]  # fmt: skip

GIB: Final = 2**30

# Upper bounds of what was counted on the tiny models of the tests: numbers at a network's widest moment, in units of
# its first level.
WORKING_UNET: Final = 20  # tensors of the first level, beside those that wait for the way up
KEPT_UNET: Final = 96  # tensors that a layer keeps for a gradient
WORKING_VAE: Final = 8
WORKING_VOCODER: Final = 6
WORKING_CODEC: Final = 5
MOST_WORDS: Final = 256  # of a prompt of MusicGen
FLOAT: Final = 4  # bytes


class MemoryPlan(NamedTuple):
    """What a run will need on a device, in bytes."""

    device: str
    weights: int  # of the model, once a process
    working: int  # what an edit takes besides: an estimate from the sizes of the model, once a process
    processes: int = 1
    free: int | None = None  # what the device has, with the weights that are loaded already; None: not known

    @property
    def needed(self) -> int:
        """For all processes."""
        return (self.weights + self.working) * self.processes

    @property
    def text(self) -> str:
        """The plan in one line."""
        free = "unknown" if self.free is None else f"{self.free / GIB:.2f} GiB"
        times = f" in each of {self.processes} processes" if self.processes > 1 else ""
        return (
            f"memory on {self.device}: {self.weights / GIB:.2f} GiB for the weights and about "
            f"{self.working / GIB:.2f} GiB for an edit{times}; free: {free}"
        )

    def check(self) -> None:
        """Raise `NotEnoughMemoryError` where the device has less than is needed."""
        if self.free is not None and self.needed > self.free:
            raise NotEnoughMemoryError(
                f"{self.text}; take a shorter part (`seconds`), fewer workers, a narrower `precision`, or another "
                "device"
            )


def free_bytes(device: str) -> int | None:
    """Return what a device has left, or None if the system does not report it."""
    if device.startswith("cuda"):
        import torch

        return int(torch.cuda.mem_get_info(torch.device(device))[0])
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    available = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(available[0]) * 1024 if available else None


def check_stored(folder: str | os.PathLike[str], device: str) -> None:
    """Raise `NotEnoughMemoryError` before weights are loaded that are larger than what is left.

    A folder's files are compared with the memory of this machine, which reads them whatever the device is.
    """
    if not Path(folder).is_dir():
        return  # an id of the Hub: its files are not here yet
    stored = sum(path.stat().st_size for path in Path(folder).rglob("*.safetensors"))
    free = free_bytes("cpu")
    if free is not None and stored > free:
        raise NotEnoughMemoryError(
            f"{folder}: the weights have {stored / GIB:.2f} GiB and this machine has {free / GIB:.2f} GiB left, before "
            f"they are moved to {device}; close other programs, or take a smaller model"
        )


def weight_bytes(*parts: Any) -> int:
    """Return the bytes of all parameters and buffers of `torch.nn.Module`; what is no module has none."""
    tensors = [
        tensor for part in parts if hasattr(part, "parameters") for tensor in (*part.parameters(), *part.buffers())
    ]
    return int(sum(tensor.numel() * tensor.element_size() for tensor in tensors))


def codec_bytes(config: Any, seconds: float) -> int:
    """Return the bytes that EnCodec needs to decode a recording: its last layer has `num_filters` channels."""
    return int(round(WORKING_CODEC * config.num_filters * seconds * config.sampling_rate) * FLOAT)


def musicgen_bytes(model: Any, seconds: float, n_prefix: int = 0) -> int:
    """Return the bytes that a model of the MusicGen family needs for a recording.

    That is the larger of what the language model keeps, and what the codec decodes with. The first are keys and values
    of each layer, for two rows of guidance: `n_prefix` vectors, text, a position a frame and one a codebook.
    """
    decoder, codec = model.config.decoder, model.config.audio_encoder
    positions = n_prefix + MOST_WORDS + round(seconds * codec.frame_rate) + decoder.num_codebooks
    cached = 2 * 2 * decoder.num_hidden_layers * decoder.hidden_size * positions
    return max(int(cached * model.decoder.dtype.itemsize), codec_bytes(codec, seconds))


def audioldm2_bytes(pipeline: Any, seconds: float, *, n_kept: int, n_rows: int = 1, gradient: bool = False) -> int:
    """Return the bytes that AudioLDM 2 needs for a recording.

    The larger of what U-Net, autoencoder and vocoder work with, and the `n_kept` latents that are kept all the time.
    The U-Net computes in its own type, `n_rows` latents at once, with `gradient` backwards too; all else in float32.
    """
    unet, vae, vocoder = pipeline.unet, pipeline.vae.config, pipeline.vocoder.config
    widths, depth = unet.config.block_out_channels, unet.config.layers_per_block
    n_frames, n_mels = round(100 * seconds), vocoder.model_in_dim
    coarser = 2 ** (len(vae.block_out_channels) - 1)
    positions = (n_frames // coarser + 1) * n_mels // coarser
    levels = [width / 4**level for level, width in enumerate(widths)]  # numbers a position of the first level
    if gradient:
        working = KEPT_UNET * ((2 * depth + 1) * sum(levels) + 2 * levels[-1])
    else:
        working = (depth + 1) * sum(levels) + WORKING_UNET * levels[0]
    in_unet = round(working * positions * n_rows) * unet.dtype.itemsize
    in_vae = WORKING_VAE * vae.block_out_channels[0] * n_frames * n_mels * FLOAT
    last = vocoder.upsample_initial_channel / 2 ** len(vocoder.upsample_rates)
    in_vocoder = round(WORKING_VOCODER * last * seconds * vocoder.sampling_rate) * FLOAT
    latents = n_kept * n_rows * vae.latent_channels * positions * FLOAT
    return int(latents + max(in_unet, in_vae, in_vocoder))
