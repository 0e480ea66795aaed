from __future__ import annotations

import re
from pathlib import Path

import pytest

from music_evals.hub.repository_folders import RepositoryFolder, Source
from music_evals.hub.rewriting import Addresses, dead_links, pin_requirements, rewrite_card

from .hub_house import REVISION, SOURCE, write

HUB = "https://huggingface.co"


@pytest.fixture
def folder(tree: Path) -> RepositoryFolder:
    return RepositoryFolder(tree / "spaces/tiny_space")


@pytest.fixture
def addresses(tree: Path) -> Addresses:
    return Addresses("org", HUB, Source(tree, SOURCE, REVISION))


@pytest.mark.parametrize(
    ("link", "moved"),
    [
        ("[a](../../metrics/tiny_metric)", f"[a]({HUB}/spaces/org/tiny_metric)"),
        ("[a](../../metrics/tiny_metric/)", f"[a]({HUB}/spaces/org/tiny_metric)"),
        ("[a](../../metrics/tiny_metric/README.md#x)", f"[a]({HUB}/spaces/org/tiny_metric#x)"),
        ("[`a` [b]](../../models/tiny_model)", f"[`a` [b]]({HUB}/org/tiny_model)"),
        ('[a](../../datasets_scripts/tiny_set "t")', f'[a]({HUB}/datasets/org/tiny_set "t")'),
        ("[a](../../models/tiny_model/train.yaml)", f"[a]({HUB}/org/tiny_model/blob/main/train.yaml)"),
        ("[a](../../datasets_scripts/tiny_set/data)", f"[a]({HUB}/datasets/org/tiny_set/tree/main/data)"),
        ("[a](../../benchmarks/speed/README.md#y)", f"[a]({SOURCE}/blob/HEAD/benchmarks/speed/README.md#y)"),
        ("[a](../../benchmarks/speed)", f"[a]({SOURCE}/tree/HEAD/benchmarks/speed)"),
        ("![a](../../docs/picture.png)", f"![a]({SOURCE}/raw/HEAD/docs/picture.png)"),
        ('<img src="../../docs/picture.png">', f'<img src="{SOURCE}/blob/HEAD/docs/picture.png">'),
        ("[a]: ../../benchmarks/speed", f"[a]: {SOURCE}/tree/HEAD/benchmarks/speed"),
        ("[a](app.py)", "[a](app.py)"),
        ("[a](#below)", "[a](#below)"),
        ("[a](https://x.org/../y)", "[a](https://x.org/../y)"),
        ("[a](mailto:x@y.z)", "[a](mailto:x@y.z)"),
        ("```\n[a](../../benchmarks/speed)\n```", "```\n[a](../../benchmarks/speed)\n```"),
        ('load("./metrics/tiny_metric")', 'load("org/tiny_metric")'),
        ("load('./metrics/tiny_metric/')", "load('org/tiny_metric')"),
        ('load("./metrics/not_there")', 'load("./metrics/not_there")'),
        ('load("./models/tiny_model/variant")', 'load("./models/tiny_model/variant")'),
    ],
)
def test_links(link: str, moved: str, folder: RepositoryFolder, addresses: Addresses) -> None:
    text = "---\ntitle: x\n---\n{}\n"
    assert rewrite_card(text.format(link), folder, addresses) == text.format(moved)


def test_a_table_of_the_catalogue_is_filled_in(folder: RepositoryFolder, addresses: Addresses) -> None:
    from music_evals.metrics.catalogue import AUXILIARY

    card = rewrite_card("# T\n\n<!-- insert: metrics AUXILIARY rhythm -->\n", folder, addresses)
    names = re.findall(r"^\| `(\w+)` \|", card, re.MULTILINE)
    assert names == [name for name, metric in AUXILIARY.items() if metric.facet == "rhythm"]
    assert "insert:" not in card


def test_a_card_further_down(tree: Path, addresses: Addresses) -> None:
    model = RepositoryFolder(tree / "models/tiny_model")
    text = "[a](../../../metrics/tiny_metric) [b](../README.md)\n"
    moved = f"[a]({HUB}/spaces/org/tiny_metric) [b](../README.md)\n"
    assert rewrite_card(text, model, addresses, path="variant/README.md") == moved


def test_ids_in_the_head(tree: Path, addresses: Addresses) -> None:
    head = """---
license: mit # kept
datasets:
- tiny_set
- other/set
- unknown
models: [tiny_model]
model-index:
- name: tiny_model
  results:
  - task: {type: t}
    dataset: {type: tiny_set, name: tiny}
    metrics: [{type: x, value: 1}]
---
# x
"""
    card = rewrite_card(head, RepositoryFolder(tree / "models/tiny_model"), addresses)
    assert "license: mit # kept\n" in card
    assert "datasets:\n- org/tiny_set\n- other/set\n- unknown\n" in card
    assert "models:\n- org/tiny_model\n" in card
    assert "type: org/tiny_set\n" in card


def test_requirements_are_pinned(addresses: Addresses) -> None:
    pin = f" @ git+{SOURCE}@{REVISION}\n"
    text = "# what the Space installs\nmusic_evals[audio,spaces]\nmusic-evals\ntorch\nmusic_evals_more\n"
    pinned = f"# what the Space installs\nmusic_evals[audio,spaces]{pin}music_evals{pin}torch\nmusic_evals_more\n"
    assert pin_requirements(text, addresses.source) == pinned


def test_nothing_is_asked_of_the_source_where_nothing_needs_it(tree: Path, folder: RepositoryFolder) -> None:
    nowhere = Addresses("org", HUB, Source(tree / "not a clone"))
    assert rewrite_card("[a](../../metrics/tiny_metric)\n", folder, nowhere).startswith("[a](https://")
    assert pin_requirements("numpy\n", nowhere.source) == "numpy\n"


@pytest.mark.parametrize(
    ("place", "package"),
    [("metrics/tiny_metric", "music_evals"), ("models/tiny_model", "music_evals[models]"), ("spaces/tiny_space", "")],
)
def test_the_first_lines_say_how_the_package_is_installed(
    place: str, package: str, tree: Path, addresses: Addresses
) -> None:
    """Not `pip install music_evals`, which `evaluate` advises: no index has it."""
    card = rewrite_card("---\ntitle: x\n---\n\n# Title\n\nText.\n", RepositoryFolder(tree / place), addresses)
    line = f'```bash\npip install "{package} @ git+{SOURCE}"\n```\n\n' if package else ""
    assert card == f"---\ntitle: x\n---\n\n# Title\n\n{line}Text.\n"


def test_the_install_line_has_the_extras_of_a_metric(tree: Path, addresses: Addresses) -> None:
    folder = RepositoryFolder(tree / "metrics/tiny_metric")
    write(folder.path, {"requirements.txt": "torch\nmusic_evals[audio,spaces]\n"})
    assert f'pip install "music_evals[audio] @ git+{SOURCE}"' in rewrite_card("# Title\n\n# Other\n", folder, addresses)


def test_dead_links(folder: RepositoryFolder) -> None:
    write(folder.root, {"x.md": "x"})
    text = "[a](gone.md) [b](../../x.md) [c](../../../outside) [d](app.py#x) [e](https://x.org)\n```\n[f](no)\n```\n"
    assert dead_links(text, folder) == ["gone.md", "../../../outside"]
