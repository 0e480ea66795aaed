"""The shared library of FluidSynth, called without a binding package.

Its own command reads the soundfont anew for every file, which takes half a second; here it stays in memory.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from music_evals.errors import BackendError, MissingBackendError

INSTALL = "apt-get install fluidsynth fluid-soundfont-gm"

Samples = npt.NDArray[np.float32]

_BLOCK = 64  # samples that FluidSynth works out at once: the grid of its timing
_CHUNK = 4096 * _BLOCK
_ERROR, _OK = -1, 0
_PLAYING = 1
_MUTE_BELOW = 4  # log levels panic 0, error 1, warning 2, info 3, debug 4


def play(midi: bytes, font: Path, sample_rate: int, release_sec: float) -> Samples:
    """Play a MIDI file to its last event, and on for `release_sec`; left and right averaged, shape (n,)."""
    library = _load_library()
    _keep_font(library, font, sample_rate)
    with _Synth(library, font, sample_rate) as synth:
        return synth.play(midi, release_sec)


def version() -> str:
    """Return the version of the shared library, such as ``"2.3.1"``."""
    version_string: bytes = _load_library().fluid_version_str()
    return version_string.decode()


@functools.cache
def _load_library() -> Any:
    """Load the shared library and declare what is called of it."""
    name = ctypes.util.find_library("fluidsynth")
    if name is None:
        raise MissingBackendError("fluidsynth", "", "rendering with General MIDI sounds", install=INSTALL)
    library = ctypes.CDLL(name)
    pointer, text, integer = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    for function, result, arguments in (
        ("fluid_version_str", text, []),
        ("new_fluid_settings", pointer, []),
        ("delete_fluid_settings", None, [pointer]),
        ("fluid_settings_setnum", integer, [pointer, text, ctypes.c_double]),
        ("fluid_settings_setint", integer, [pointer, text, integer]),
        ("fluid_settings_setstr", integer, [pointer, text, text]),
        ("new_fluid_synth", pointer, [pointer]),
        ("delete_fluid_synth", None, [pointer]),
        ("fluid_synth_sfload", integer, [pointer, text, integer]),
        ("new_fluid_player", pointer, [pointer]),
        ("delete_fluid_player", None, [pointer]),
        ("fluid_player_add_mem", integer, [pointer, text, ctypes.c_size_t]),
        ("fluid_player_play", integer, [pointer]),
        ("fluid_player_get_status", integer, [pointer]),
        ("fluid_player_get_current_tick", integer, [pointer]),
        ("fluid_player_get_total_ticks", integer, [pointer]),
        ("fluid_synth_write_float", integer, [pointer, integer, *[pointer, integer, integer] * 2]),
        ("fluid_set_log_function", pointer, [integer, pointer, pointer]),
    ):
        declared = getattr(library, function)
        declared.restype, declared.argtypes = result, arguments
    for level in range(_MUTE_BELOW + 1):
        library.fluid_set_log_function(level, None, None)  # its errors come back as codes
    return library


@functools.cache
def _keep_font(library: Any, font: Path, sample_rate: int) -> _Synth:
    """Hold one synthesiser for ever: FluidSynth shares a font's samples between all that have it open."""
    return _Synth(library, font, sample_rate).__enter__()


class _Synth:
    """A synthesiser with one soundfont, new for each file: no sound of one file lasts into the next."""

    def __init__(self, library: Any, font: Path, sample_rate: int) -> None:
        self._library, self._font, self._sample_rate = library, font, sample_rate

    def __enter__(self) -> Self:
        library = self._library
        self._settings = library.new_fluid_settings()
        library.fluid_settings_setnum(self._settings, b"synth.sample-rate", float(self._sample_rate))
        library.fluid_settings_setint(self._settings, b"synth.chorus.active", 0)
        library.fluid_settings_setint(self._settings, b"synth.cpu-cores", 1)
        library.fluid_settings_setstr(self._settings, b"player.timing-source", b"sample")
        self._synth = library.new_fluid_synth(self._settings)
        if library.fluid_synth_sfload(self._synth, os.fsencode(self._font), 1) == _ERROR:
            self.__exit__()
            raise BackendError(f"FluidSynth cannot read the soundfont {self._font}; expected a .sf2 or .sf3 file")
        return self

    def __exit__(self, *_: object) -> None:
        self._library.delete_fluid_synth(self._synth)
        self._library.delete_fluid_settings(self._settings)

    def play(self, midi: bytes, release_sec: float) -> Samples:
        library = self._library
        player = library.new_fluid_player(self._synth)
        if not midi.startswith(b"MThd") or library.fluid_player_add_mem(player, midi, len(midi)) != _OK:
            library.delete_fluid_player(player)
            raise BackendError("FluidSynth cannot play the file; expected the bytes of a MIDI file")
        library.fluid_player_play(player)
        chunks = []
        playing = True
        while playing:
            stereo = np.zeros((2, _CHUNK), dtype=np.float32)
            n, playing = self._fill(stereo, player)
            chunks.append(stereo[:, :n])
        rest = np.zeros((2, round(release_sec * self._sample_rate)), dtype=np.float32)
        self._write(rest, 0, rest.shape[1])
        library.delete_fluid_player(player)
        mono: Samples = np.concatenate([*chunks, rest], axis=1).mean(axis=0, dtype=np.float32)
        return mono

    def _fill(self, stereo: Samples, player: int) -> tuple[int, bool]:
        """Write until the last event or the end of the array; return how much, and whether there is more to come."""
        library = self._library
        for start in range(0, stereo.shape[1], _BLOCK):
            self._write(stereo, start, _BLOCK)  # the file is read in the first block
            # without the second condition it goes on until the last inaudible voice has died away
            if library.fluid_player_get_status(player) != _PLAYING or library.fluid_player_get_current_tick(
                player
            ) >= library.fluid_player_get_total_ticks(player):
                return start + _BLOCK, False
        return stereo.shape[1], True

    def _write(self, stereo: Samples, start: int, n: int) -> None:
        left, right = (channel.ctypes.data for channel in stereo)
        self._library.fluid_synth_write_float(self._synth, n, left, start, 1, right, start, 1)
