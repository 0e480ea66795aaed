import subprocess
import sys

import pytest

from music_evals import audio


def test_every_public_name_is_there():
    for name in audio.__all__:
        assert getattr(audio, name) is not None
    assert set(audio.__all__) == set(audio._HOME) <= set(dir(audio))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        audio.nonsense  # noqa: B018  # the access is what is tested


def test_importing_the_room_loads_no_decoder_and_no_extractor():
    code = (
        "import sys, music_evals.audio as room; [getattr(room, name) for name in room.__all__]; "
        "print(*({'soundfile', 'soxr', 'librosa', 'numba', 'scipy', 'onnxruntime', 'torch'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
