from __future__ import annotations

import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import music_evals


@pytest.mark.parametrize("name", music_evals.__all__)
def test_a_public_name_resolves_and_is_documented(name: str) -> None:
    value = getattr(music_evals, name)
    assert name in dir(music_evals)
    if name == "__version__":
        return
    assert f"`{name}`" in (music_evals.__doc__ or "")
    home = importlib.import_module(f"music_evals.{music_evals._MODULE_OF.get(name, 'annotations')}")
    assert getattr(home, name) is value
    assert name in home.__all__


def test_what_is_offered_is_few() -> None:
    assert set(music_evals._MODULE_OF) < set(music_evals.__all__)
    assert len(music_evals.__all__) <= 25


def test_a_former_name_works_and_warns() -> None:
    with pytest.warns(DeprecationWarning, match="music_evals.window is called repo_path now"):
        assert music_evals.window is music_evals.repo_path


def test_the_version_is_written_once(root: Path) -> None:
    about = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in about["project"]
    assert about["project"]["dynamic"] == ["version"]
    assert about["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "music_evals.__version__"}


def test_other_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'evaluate_inpainted'"):
        _ = music_evals.evaluate_inpainted


def test_the_command_is_quick_to_help() -> None:
    code = (
        "import sys\n"
        "from music_evals.cli import main\n"
        "try:\n    main(['inpainting', '--help'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'torch', 'datasets', 'scipy', 'matplotlib'}))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"


def test_the_package_is_the_command_too() -> None:
    run = subprocess.run([sys.executable, "-m", "music_evals", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout == f"music-evals {music_evals.__version__}\n"
    assert not run.stderr
