"""Fixtures of a test with the local Hub: the server, a client, a new organisation, and small repository folders."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from music_evals.hub.repository_folders import listed_files

from .hub_client import Answer, HubClient
from .hub_server import LocalHub

REVISION = "0123456789abcdef0123456789abcdef01234567"
SOURCE = "https://code.example/house/music_evals"
ROOT = Path(__file__).resolve().parents[2]

_numbers = itertools.count(1)


class House(NamedTuple):
    """An organisation of one test, with a member who may write."""

    hub: LocalHub
    client: HubClient
    org: str
    user: str
    token: str

    def cli(self, *arguments: str, token: str | None = "", cwd: Path | None = None) -> Answer:
        """Run ``music-evals`` as the member; with another token, or with None as nobody."""
        return self.client.cli(*arguments, token=self.token if token == "" else token, cwd=cwd)

    def publish(self, *arguments: str, token: str | None = "", cwd: Path | None = None) -> Answer:
        fixed = ("--org", self.org, "--source", SOURCE, "--revision", REVISION)
        return self.cli("publish", *arguments, *fixed, token=token, cwd=cwd)


@pytest.fixture(scope="session")
def local_hub() -> Iterator[LocalHub]:
    hub = LocalHub()
    yield hub
    hub.close()


@pytest.fixture(scope="session")
def hub_client(local_hub: LocalHub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubClient]:
    client = HubClient(local_hub, tmp_path_factory.mktemp("hub_home"), ROOT)
    yield client
    client.close()


@pytest.fixture
def house(local_hub: LocalHub, hub_client: HubClient) -> Iterator[House]:
    number = next(_numbers)
    org, user = f"org{number}", f"user{number}"
    yield House(local_hub, hub_client, org, user, local_hub.add_user(user, org))
    local_hub.faults.clear()


@pytest.fixture
def patience(house: House) -> Iterator[None]:
    """The Hub is waited for a second only, and what waits says so soon."""
    limits = "from music_evals.hub import client\nclient.READ_SEC, client.WRITE_SEC, client.SAY_SEC = "
    house.client.python(f"{limits}1.0, 30.0, 0.3")
    yield
    house.client.python(f"{limits}20.0, 120.0, 5.0")


@pytest.fixture(scope="session")
def copy_of_ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our repository folders and what they link to, outside of the clone, where only committed files are published."""
    names = listed_files(ROOT / "metrics" / "..") or [path for path in ROOT.rglob("*") if path.is_file()]
    root = tmp_path_factory.mktemp("ours")
    for path in names:
        place = root / path.resolve().relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    return root


SPACE = """---
title: Tiny
emoji: 🎼
colorFrom: red
colorTo: blue
sdk: gradio
sdk_version: 6.31.0
python_version: "3.12"
app_file: app.py
license: apache-2.0
{more}---

# {name}

{text}
"""
METRIC = """\
tags: [evaluate, metric]
description: A metric.
"""
DATASET = """---
license: cc-by-4.0
configs:
- config_name: one
  data_files: [{split: test, path: "data/one/test-*.parquet"}]
---

# Tiny set
"""
MODEL = """---
license: apache-2.0
library_name: music_evals
datasets: [tiny_set]
---

# Tiny model
"""
EVAL = """name: Tiny
description: A tiny benchmark.
evaluation_framework: music_evals
tasks:
- {id: one_test_note_f1, config: one, split: test}
"""


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A root with one small repository folder of each kind."""
    root = tmp_path / "root"
    app = {"app.py": "print('app')\n", "requirements.txt": "music_evals[spaces]\n"}
    write(root, {"pyproject.toml": f'[project]\nname = "x"\n[project.urls]\nRepository = "{SOURCE}.git"\n'})
    write(root, {"benchmarks/speed/README.md": "# Speed\n", "docs/picture.png": b"png"})
    example = '```python\nevaluate.load("./metrics/tiny_metric")\n```'
    metric = SPACE.format(name="tiny_metric", more=METRIC, text=example)
    write(root / "metrics/tiny_metric", {**app, "README.md": metric, "tiny_metric.py": "import evaluate\n"})
    text = "See [the metric](../../metrics/tiny_metric/README.md#range) and [speed](../../benchmarks/speed)."
    write(root / "spaces/tiny_space", {**app, "README.md": SPACE.format(name="tiny_space", more="", text=text)})
    write(
        root / "datasets_scripts/tiny_set",
        {"README.md": DATASET, "data/one/test-00000-of-00001.parquet": b"PAR1 not really PAR1", "eval.yaml": EVAL},
    )
    write(
        root / "models/tiny_model",
        {"README.md": MODEL, "config.json": "{}", "model.safetensors": b"weights", "train.yaml": "seed: 0\n"},
    )
    return root
