import subprocess
import sys

import pytest

from music_evals import symbolic


def test_every_public_name_is_there():
    for name in symbolic.__all__:
        assert getattr(symbolic, name).__doc__
    assert set(symbolic.__all__) == set(symbolic._HOME) <= set(dir(symbolic))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        symbolic.nonsense  # noqa: B018  # the access is what is tested


def test_importing_the_room_loads_no_parser():
    code = (
        "import sys, music_evals.symbolic as room; [getattr(room, name) for name in room.__all__]; "
        "print(*({'symusic', 'music21', 'pretty_midi', 'scipy', 'torch'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
