"""Publishing, with the real client against a local Hub."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .hub_house import REVISION, SOURCE, House, write
from .test_source import git

WRITES = ("POST", "PUT")


def writes(house: House, mark: int) -> list[str]:
    return [str(asked) for asked in house.hub.since(mark) if asked.method in WRITES]


def test_every_kind_arrives_and_a_second_run_sends_nothing(house: House, tree: Path) -> None:
    done = house.publish("--all", cwd=tree)
    assert done.code == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    order = ["datasets_scripts/tiny_set", "models/tiny_model", "metrics/tiny_metric", "spaces/tiny_space"]
    assert [row[0] for row in rows] == order
    assert {row[3] for row in rows} == {"published"}
    metric = house.hub.repo("space", f"{house.org}/tiny_metric")
    assert metric.sdk == "gradio"
    assert set(metric.head.tree) == {".gitattributes", "README.md", "app.py", "requirements.txt", "tiny_metric.py"}
    assert metric.history() == ["Publish metrics/tiny_metric of music_evals", "initial commit"]

    mark = len(house.hub.log)
    again = house.publish("--all", cwd=tree)
    assert again.code == 0
    assert again.stdout.count("unchanged") == 4
    assert set(writes(house, mark)) == {"POST /api/validate-yaml"}
    assert len(metric.commits) == 2


def test_what_changes_on_the_way(house: House, tree: Path) -> None:
    assert house.publish("--all", cwd=tree).code == 0
    hub, org = house.hub, house.org
    pinned = hub.text("space", f"{org}/tiny_space", "requirements.txt")
    assert pinned == f"music_evals[spaces] @ git+{SOURCE}@{REVISION}\n"
    space = hub.text("space", f"{org}/tiny_space", "README.md")
    assert f"[the metric]({hub.url}/spaces/{org}/tiny_metric#range)" in space
    assert f"[speed]({SOURCE}/tree/HEAD/benchmarks/speed)" in space
    assert f'evaluate.load("{org}/tiny_metric")' in hub.text("space", f"{org}/tiny_metric", "README.md")
    assert f"- {org}/tiny_set" in hub.text("model", f"{org}/tiny_model", "README.md")
    assert hub.repo("dataset", f"{org}/tiny_set").head.tree["data/one/test-00000-of-00001.parquet"].sha256


def test_only_what_differs_is_sent(house: House, tree: Path) -> None:
    assert house.publish("models/tiny_model", cwd=tree).code == 0
    write(tree / "models/tiny_model", {"train.yaml": "seed: 1\n", "run/checkpoint.pt": b"state", ".DS_Store": b"x"})
    mark = len(house.hub.log)
    done = house.publish("models/tiny_model", "--json", cwd=tree)
    assert done.code == 0
    assert '"path": "train.yaml"' in done.stdout
    assert done.stdout.count('"path"') == 1
    assert not any("lfs" in asked for asked in writes(house, mark))
    repo = house.hub.repo("model", f"{house.org}/tiny_model")
    assert len(repo.commits) == 3
    assert set(repo.head.tree) == {".gitattributes", "README.md", "config.json", "model.safetensors", "train.yaml"}


def test_a_dry_run_sends_nothing(house: House, tree: Path) -> None:
    assert house.publish("metrics/tiny_metric", cwd=tree).code == 0
    write(tree / "metrics/tiny_metric", {"app.py": "print('other')\n"})
    mark = len(house.hub.log)
    done = house.publish("--all", "--dry-run", cwd=tree)
    assert done.code == 0
    assert {asked.method for asked in house.hub.since(mark)} <= {"GET", "HEAD"}
    assert "~ app.py (15 B)" in done.stdout
    assert "+ model.safetensors (7 B)" in done.stdout
    assert done.stdout.count("would change") == 4
    assert done.stdout.endswith("Nothing was sent.\n")
    assert len(house.hub.repo("space", f"{house.org}/tiny_metric").commits) == 2
    nobody = house.publish("metrics/tiny_metric", "--dry-run", token=None, cwd=tree)
    assert nobody.code == 0  # public repositories are read without a token


def test_a_pull_request_is_opened_once_and_merged(house: House, tree: Path) -> None:
    assert house.publish("metrics/tiny_metric", cwd=tree).code == 0
    write(tree / "metrics/tiny_metric", {"app.py": "print('other')\n"})
    guest = house.hub.add_user("guest")
    repo = house.hub.repo("space", f"{house.org}/tiny_metric")
    for _ in range(2):  # the second finds the first
        done = house.publish("metrics/tiny_metric", "--pr", token=guest, cwd=tree)
        assert done.code == 0, done.stderr
        assert "proposed" in done.stdout
        assert f"{house.hub.url}/spaces/{house.org}/tiny_metric/discussions/1" in done.stdout
    assert [request.num for request in repo.requests] == [1]
    assert house.hub.text("space", repo.name, "app.py") == "print('app')\n"
    merge = f"from huggingface_hub import HfApi; HfApi().merge_pull_request({repo.name!r}, 1, repo_type='space')"
    house.client.python(merge, token=house.token)
    assert house.hub.text("space", repo.name, "app.py") == "print('other')\n"
    assert "unchanged" in house.publish("metrics/tiny_metric", cwd=tree).stdout


def test_a_pull_request_needs_a_repository(house: House, tree: Path) -> None:
    done = house.publish("metrics/tiny_metric", "--pr", cwd=tree)
    assert done.code == 1
    assert "HubNotFoundError" in done.stderr
    assert "publish it once without a pull request" in done.stderr


def test_who_may_not_write_is_told_before_anything_is_sent(house: House, tree: Path) -> None:
    stranger, reader = house.hub.add_user("stranger"), house.hub.add_user("reader", house.org, role="read")
    for token, said in {
        None: "there is no token; log in with `hf auth login`",
        "hf_wrong": "the Hub refuses the token",
        reader: "may only read",
        stranger: f"stranger is no member of {house.org}",
    }.items():
        mark = len(house.hub.log)
        done = house.publish("metrics/tiny_metric", token=token, cwd=tree)
        assert done.code == 1
        assert said in done.stderr
        assert writes(house, mark) == []


def test_one_bad_folder_keeps_all_from_being_sent(house: House, tree: Path) -> None:
    card = tree / "spaces/tiny_space/README.md"
    card.write_text(card.read_text().replace("colorFrom: red", "colorFrom: crimson").replace("speed)", "gone)"))
    write(tree / "metrics/tiny_metric", {"requirements.txt": "music_evals[spaces]\ntorch==2.8\n"})
    mark = len(house.hub.log)
    done = house.publish("--all", cwd=tree)
    assert done.code == 2
    for said in (
        "nothing was sent",
        "spaces/tiny_space: README.md: colorFrom must be one of",
        "spaces/tiny_space: README.md links to ../../benchmarks/gone",
        "metrics/tiny_metric: requirements.txt pins torch (torch==2.8)",
    ):
        assert said in done.stderr
    assert house.hub.since(mark) == []


def test_the_hub_checks_all_cards_first(house: House, tree: Path) -> None:
    card = tree / "spaces/tiny_space/README.md"
    card.write_text(card.read_text().replace("apache-2.0", "no-such-licence"))
    mark = len(house.hub.log)
    done = house.publish("--all", cwd=tree)
    assert done.code == 2
    assert 'spaces/tiny_space: README.md: "license" must be one of the ids of the list' in done.stderr
    assert set(writes(house, mark)) == {"POST /api/validate-yaml"}


def test_one_failure_does_not_stop_the_others_and_a_second_run_goes_on(house: House, tree: Path) -> None:
    house.hub.fault(f"POST /api/models/{house.org}/tiny_model/commit", "403")
    house.hub.fault(f"POST /api/spaces/{house.org}/tiny_metric/commit", "412")
    house.hub.fault(f"POST /api/spaces/{house.org}/tiny_space/commit", "500")
    done = house.publish("--all", cwd=tree)
    assert done.code == 1
    assert [line.split()[3] for line in done.stdout.splitlines()[1:]] == ["published", "failed", "failed", "failed"]
    for said in ("HubRightsError", "HubConflictError", "another commit was made in between", "the Hub answers 500"):
        assert said in done.stderr
    assert set(house.hub.repo("model", f"{house.org}/tiny_model").head.tree) == {".gitattributes"}
    again = house.publish("--all", cwd=tree)
    assert again.code == 0
    assert [line.split()[3] for line in again.stdout.splitlines()[1:]] == ["unchanged", *["published"] * 3]


def test_without_a_connection_the_rest_is_not_tried(house: House, tree: Path) -> None:
    house.hub.fault(f"POST /api/models/{house.org}/tiny_model/commit", "cut after")  # done, but the answer is lost
    done = house.publish("--all", cwd=tree)
    assert done.code == 1
    assert "HubOfflineError" in done.stderr
    assert done.stdout.count("not tried") == 2
    again = house.publish("--all", cwd=tree)
    assert again.code == 0
    rows = [line.split()[3] for line in again.stdout.splitlines()[1:]]
    assert rows == ["unchanged", "unchanged", "published", "published"]
    assert len(house.hub.repo("model", f"{house.org}/tiny_model").commits) == 2


HURRY = """
import time
from types import SimpleNamespace
from huggingface_hub.utils import _http
_http.time = SimpleNamespace(sleep=lambda seconds: time.sleep(seconds / 100))
"""


@pytest.fixture
def hurry(house: House) -> Iterator[None]:
    """Where the client waits up to eight seconds before it asks again, it waits a hundredth of that."""
    house.client.python(HURRY)
    yield
    house.client.python("import time\nfrom huggingface_hub.utils import _http\n_http.time = time")


@pytest.mark.slow
@pytest.mark.usefixtures("hurry")
def test_the_client_tries_a_broken_upload_again(house: House, tree: Path) -> None:
    write(tree / "models/tiny_model", {"model.safetensors": bytes(2**21)})
    cut = house.hub.fault("PUT /lfs/", "cut")
    done = house.publish("models/tiny_model", cwd=tree)
    assert done.code == 0, done.stderr
    assert cut.seen.is_set()
    assert house.hub.repo("model", f"{house.org}/tiny_model").head.tree["model.safetensors"].size == 2**21


@pytest.mark.slow
@pytest.mark.usefixtures("hurry")
def test_an_upload_that_breaks_every_time_is_a_lost_connection(house: House, tree: Path) -> None:
    write(tree / "models/tiny_model", {"model.safetensors": b"weights that no other test has sent"})
    house.hub.fault("PUT /lfs/", "cut", times=100)
    done = house.publish("models/tiny_model", cwd=tree)
    assert done.code == 1
    assert "HubOfflineError: committing to model" in done.stderr
    house.hub.faults.clear()
    assert house.publish("models/tiny_model", cwd=tree).code == 0


@pytest.mark.slow
def test_a_killed_publication_goes_on_where_it_stood(house: House, tree: Path) -> None:
    big, bigger = b"PAR1" + bytes(2**21), b"PAR1" + bytes(3 * 2**21)
    write(tree / "datasets_scripts/tiny_set/data/one", {"test-00000-of-00001.parquet": big, "test-x.parquet": bigger})
    hanging = house.hub.fault(f"PUT /lfs/{sha256(bigger)}", "hang")
    fixed = ["--org", house.org, "--source", SOURCE, "--revision", REVISION]
    process = house.client.start(["publish", "datasets_scripts/tiny_set", *fixed], token=house.token, cwd=tree)
    assert hanging.seen.wait(60)
    wait_for(lambda: sha256(big) in house.hub.large)
    process.kill()
    process.communicate()
    repo = house.hub.repo("dataset", f"{house.org}/tiny_set")
    assert set(repo.head.tree) == {".gitattributes"}  # all or nothing

    mark = len(house.hub.log)
    assert house.publish("datasets_scripts/tiny_set", cwd=tree).code == 0
    assert [asked for asked in writes(house, mark) if asked.startswith("PUT")] == [f"PUT /lfs/{sha256(bigger)}"]
    assert {"data/one/test-00000-of-00001.parquet", "data/one/test-x.parquet"} < set(repo.head.tree)


def sha256(content: bytes) -> str:
    import hashlib

    return hashlib.sha256(content).hexdigest()


def wait_for(condition: object, seconds: float = 30) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing came"
        time.sleep(0.02)


def test_files_that_only_the_hub_has(house: House, tree: Path) -> None:
    assert house.publish("models/tiny_model", cwd=tree).code == 0
    name = f"{house.org}/tiny_model"
    house.hub.put("model", name, {"notes.txt": "by hand", ".eval_results/x.yaml": "[]"})
    done = house.publish("models/tiny_model", cwd=tree)
    assert "unchanged" in done.stdout
    assert "notes.txt, which the folder does not; --prune deletes them" in done.stderr
    assert house.publish("models/tiny_model", "--prune", cwd=tree).code == 0
    held = set(house.hub.repo("model", name).head.tree)
    assert "notes.txt" not in held
    assert {".gitattributes", ".eval_results/x.yaml", "README.md"} < held


def test_another_repository_of_that_name_is_not_overwritten(house: House, tree: Path) -> None:
    name = f"{house.org}/tiny_model"
    house.hub.put("model", name, {"README.md": "---\nlibrary_name: music_evals\n---\n# By hand\n"})
    mark = len(house.hub.log)
    for more in ((), ("--pr",), ("--dry-run",)):
        done = house.publish("--all", *more, cwd=tree)
        assert done.code == 1
        assert "HubForeignError" in done.stderr or "these repositories are not ours" in done.stderr
        assert f"model {name}: it holds 2 files and no commit" in done.stderr
    assert set(writes(house, mark)) == {"POST /api/validate-yaml"}
    assert house.publish("models/tiny_model", "--adopt", cwd=tree).code == 0
    assert "# Tiny model" in house.hub.text("model", name, "README.md")
    write(tree / "models/tiny_model", {"train.yaml": "seed: 1\n"})
    assert house.publish("models/tiny_model", cwd=tree).code == 0  # now it is ours


def test_a_space_of_another_sdk_is_refused(house: House, tree: Path) -> None:
    name = f"{house.org}/tiny_space"
    house.hub.put("space", name, {})
    house.hub.repo("space", name).sdk = "docker"
    for more in ((), ("--adopt",)):
        done = house.publish("spaces/tiny_space", *more, cwd=tree)
        assert done.code == 1
        assert "a Space of the sdk docker, the folder is of gradio" in done.stderr


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_only_what_is_committed_is_published(house: House, tree: Path) -> None:
    write(tree, {".gitignore": "*.secret\n"})
    git(tree, "init", "-q")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "all")
    folder = write(tree / "models/tiny_model", {"key.secret": "x", "new.txt": "x"})
    done = house.publish("models/tiny_model", cwd=tree)
    assert done.code == 2
    assert "not committed (models/tiny_model/new.txt); commit them" in done.stderr
    (folder / "new.txt").unlink()
    assert house.publish("models/tiny_model", cwd=tree).code == 0
    assert "key.secret" not in house.hub.repo("model", f"{house.org}/tiny_model").head.tree


HARDWARE = "suggested_hardware: zero-a10g\n"


@pytest.fixture
def gpu_tree(tree: Path) -> Path:
    card = tree / "spaces/tiny_space/README.md"
    card.write_text(card.read_text().replace("license:", f"{HARDWARE}license:"))
    return tree


def test_a_space_gets_the_hardware_that_its_card_suggests(house: House, gpu_tree: Path) -> None:
    space = f"{house.org}/tiny_space"
    looked = house.publish("spaces/tiny_space", "--dry-run", cwd=gpu_tree)
    assert f"space {space}: hardware zero-a10g would be asked for" in looked.stdout
    done = house.publish("--all", cwd=gpu_tree)
    assert done.code == 0, done.stderr
    assert f"space {space}: hardware zero-a10g was asked for" in done.stdout
    assert done.stdout.count("hardware") == 1
    assert house.hub.repo("space", space).hardware["requested"] == "zero-a10g"
    assert house.hub.repo("space", f"{house.org}/tiny_metric").hardware["requested"] == "cpu-basic"

    mark = len(house.hub.log)
    again = house.publish("spaces/tiny_space", "--json", cwd=gpu_tree)
    assert json.loads(again.stdout)[0]["hardware"] == {"name": "zero-a10g", "state": "there"}
    assert set(writes(house, mark)) == {"POST /api/validate-yaml"}


def test_hardware_is_asked_for_by_name_and_a_dry_run_only_says_so(house: House, gpu_tree: Path) -> None:
    space = house.publish("spaces/tiny_space", cwd=gpu_tree)
    assert space.code == 0
    repo = house.hub.repo("space", f"{house.org}/tiny_space")
    mark = len(house.hub.log)
    looked = house.publish("spaces/tiny_space", "--hardware", "cpu-basic", "--dry-run", cwd=gpu_tree)
    assert "hardware cpu-basic would be asked for" in looked.stdout
    assert writes(house, mark) == []
    assert house.publish("spaces/tiny_space", "--hardware", "cpu-basic", cwd=gpu_tree).code == 0
    assert repo.hardware["requested"] == "cpu-basic"


@pytest.mark.parametrize(("name", "said"), [("t4-small", "Payment required"), ("zero", "must be one of")])
def test_a_refused_hardware_does_not_undo_the_upload(house: House, tree: Path, name: str, said: str) -> None:
    done = house.publish("spaces/tiny_space", "models/tiny_model", "--hardware", name, cwd=tree)
    assert done.code == 1
    assert f"hardware {name} was refused" in done.stdout
    assert f"asking for the hardware {name} of space {house.org}/tiny_space: the Hub answers 40" in done.stderr
    assert said in done.stderr
    assert "the files have arrived" in done.stderr
    assert [line.split()[3] for line in done.stdout.splitlines()[1:3]] == ["published", "published"]
    assert "app.py" in house.hub.repo("space", f"{house.org}/tiny_space").head.tree


def test_what_the_hub_says_of_the_hardware_is_verified(house: House, tree: Path) -> None:
    house.hub.ignored_hardware.add("zero-a10g")
    done = house.publish("spaces/tiny_space", "--hardware", "zero-a10g", cwd=tree)
    house.hub.ignored_hardware.clear()
    assert done.code == 1
    assert "was asked to run on zero-a10g, and the Hub says that it runs on cpu-basic" in done.stderr


def test_where_hardware_makes_no_sense(house: House, gpu_tree: Path) -> None:
    for arguments, said in {
        ("models/tiny_model",): "none of the folders becomes one",
        ("spaces/tiny_space", "--pr"): "a pull request changes no hardware",
        ("--all",): "--hardware is for Spaces that are named",
    }.items():
        done = house.publish(*arguments, "--hardware", "zero-a10g", cwd=gpu_tree)
        assert done.code == 2
        assert said in done.stderr
    assert house.publish("spaces/tiny_space", cwd=gpu_tree).code == 0
    write(gpu_tree / "spaces/tiny_space", {"app.py": "print('other')\n"})
    mark = len(house.hub.log)
    assert (
        house.publish("spaces/tiny_space", "--pr", cwd=gpu_tree).code == 0
    )  # what the card suggests is left to a merge
    assert not any("hardware" in asked or "runtime" in asked for asked in map(str, house.hub.since(mark)))


@pytest.mark.parametrize("version", ["", "python_version: 3.12\n", 'python_version: "3.10"\n'])
def test_a_space_that_would_not_build_is_not_published(house: House, tree: Path, version: str) -> None:
    card = tree / "metrics/tiny_metric/README.md"
    card.write_text(card.read_text().replace('python_version: "3.12"\n', version))
    done = house.publish("metrics/tiny_metric", cwd=tree)
    assert done.code == 2
    assert "python_version must be a Python that music_evals supports (>=3.11), in quotes" in done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize(
    ("place", "tried", "said"),
    [
        ("GET /api/models/{}/tiny_model$", "reading", "the connection to the Hub failed (ReadTimeout"),
        # where the client would ask six times
        ("GET /api/models/{}/tiny_model/tree", "reading", "the Hub has not answered for 2 s"),
        ("POST /api/models/{}/tiny_model/preupload", "committing to", "the Hub has not answered for 2 s"),
    ],
)
def test_a_hub_that_hangs_is_waited_for_aloud_and_not_for_long(
    house: House, tree: Path, place: str, tried: str, said: str
) -> None:
    assert house.publish("models/tiny_model", cwd=tree).code == 0
    write(tree / "models/tiny_model", {"train.yaml": "seed: 1\n"})
    house.hub.fault(place.format(house.org), "hang", times=100)
    start = time.monotonic()
    done = house.publish("models/tiny_model", cwd=tree)
    assert done.code == 1
    assert time.monotonic() - start < 60
    assert f"waiting for the Hub for 0 s: {tried} model {house.org}/tiny_model" in done.stderr
    assert f"{tried} model {house.org}/tiny_model: {said}" in done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("patience")
def test_a_commit_that_takes_its_time_is_waited_for(house: House, tree: Path) -> None:
    house.hub.fault("POST /api/models/.*/commit", "slow")
    done = house.publish("models/tiny_model", cwd=tree)
    assert done.code == 0, done.stderr
    assert f"committing to model {house.org}/tiny_model" in done.stderr


def test_a_card_with_a_byte_order_mark_has_one_head(house: House, tree: Path) -> None:
    card = tree / "models/tiny_model/README.md"
    card.write_text("\ufeff" + card.read_text())
    assert house.publish("models/tiny_model", cwd=tree).code == 0
    text = house.hub.text("model", f"{house.org}/tiny_model", "README.md")
    assert text.startswith("\ufeff---\n")
    assert text.count("---\n") == 2
    assert f"- {house.org}/tiny_set" in text
    card.write_text(card.read_text().replace("apache-2.0", "no-such-licence"))
    assert '"license" must be one of' in house.publish("models/tiny_model", cwd=tree).stderr  # the Hub sees the head


def test_an_open_pull_request_gets_what_is_new(house: House, tree: Path) -> None:
    assert house.publish("metrics/tiny_metric", cwd=tree).code == 0
    guest = house.hub.add_user("guest")
    write(tree / "metrics/tiny_metric", {"app.py": "print('one')\n", "more.txt": "x"})
    assert house.publish("metrics/tiny_metric", "--pr", token=guest, cwd=tree).code == 0
    write(tree / "metrics/tiny_metric", {"app.py": "print('two')\n"})
    (tree / "metrics/tiny_metric/more.txt").unlink()
    done = house.publish("metrics/tiny_metric", "--pr", token=guest, cwd=tree)
    assert done.code == 0, done.stderr
    repo = house.hub.repo("space", f"{house.org}/tiny_metric")
    assert f"{repo.name}/discussions/1" in done.stdout
    assert [request.num for request in repo.requests] == [1]
    assert house.hub.text("space", repo.name, "app.py", "refs/pr/1") == "print('two')\n"
    proposed = repo.resolve("refs/pr/1")
    assert proposed is not None
    assert "more.txt" not in proposed.tree
    assert house.hub.text("space", repo.name, "app.py") == "print('app')\n"


def test_a_private_repository(house: House, tree: Path) -> None:
    assert house.publish("models/tiny_model", "--private", cwd=tree).code == 0
    assert house.hub.repo("model", f"{house.org}/tiny_model").private


INDEX = """model-index:
- name: tiny_model
  results:
  - task: {{type: music-inpainting}}
    dataset: {{type: {dataset}, name: tiny, config: one, split: test{revision}}}
    metrics:
"""
METRIC = "    - {{type: {name}, value: {value}, args: {{variant: corrected}}}}\n"


def test_results_on_the_hub_outlive_a_publication(house: House, tree: Path) -> None:
    card = tree / "models/tiny_model/README.md"
    ours = INDEX.format(dataset="tiny_set", revision="") + METRIC.format(name="note_f1", value=0.25)
    card.write_text(card.read_text().replace("datasets:", f"{ours}datasets:", 1))
    assert house.publish("models/tiny_model", cwd=tree).code == 0
    name = f"{house.org}/tiny_model"
    text = house.hub.text("model", name, "README.md")
    assert f"type: {house.org}/tiny_set" in text
    pushed = text.replace("value: 0.25", "value: 0.25, verified: true").replace(
        "results:\n",
        "results:\n  - task: {type: other}\n    dataset: {type: x/y, name: y}\n    metrics: [{type: z, value: 1}]\n",
    )
    house.hub.put("model", name, {"README.md": pushed})
    card.write_text(card.read_text() + "\nMore text.\n")
    assert house.publish("models/tiny_model", cwd=tree).code == 0
    after = house.hub.text("model", name, "README.md")
    assert "More text." in after
    assert "verified: true" in after
    assert "type: x/y" in after
    assert "unchanged" in house.publish("models/tiny_model", cwd=tree).stdout


def test_a_pushed_value_outlives_another_in_the_folder(house: House, tree: Path) -> None:
    card = tree / "models/tiny_model/README.md"
    ours = INDEX.format(dataset="tiny_set", revision="") + METRIC.format(name="note_f1", value=0.25)
    card.write_text(card.read_text().replace("datasets:", f"{ours}datasets:", 1))
    assert house.publish("models/tiny_model", cwd=tree).code == 0
    name = f"{house.org}/tiny_model"
    text = house.hub.text("model", name, "README.md")
    house.hub.put("model", name, {"README.md": text.replace("value: 0.25", "value: 0.5")})
    for more in (("--dry-run",), ()):
        done = house.publish("models/tiny_model", *more, cwd=tree)
        assert done.code == 0, done.stderr
        assert f"note_f1 on {house.org}/tiny_set one test, variant corrected: 0.5, in the folder 0.25" in done.stdout
    assert "value: 0.5" in house.hub.text("model", name, "README.md")


@pytest.fixture
def published(house: House, copy_of_ours: Path) -> House:
    folders = ["metrics/note_f1", "datasets_scripts/jsb_chorales"]
    done = house.publish(*folders, cwd=copy_of_ours)
    assert done.code == 0, done.stderr
    return house


@pytest.mark.slow
def test_a_published_metric_and_dataset_are_loaded_by_their_ids(published: House) -> None:
    code = f"""
import evaluate
from datasets import load_dataset, disable_progress_bars
disable_progress_bars()
rows = load_dataset("{published.org}/jsb_chorales", "musib_official", split="test")
local = load_dataset("./datasets_scripts/jsb_chorales", "musib_official", split="test")
stream = load_dataset("{published.org}/jsb_chorales", "musib_official", split="test", streaming=True)
contexts = [row["tokens"] for row in rows]
copies = [context[48:144] for context in contexts]
scores = [
    evaluate.load(name).compute(predictions=copies, references=contexts)
    for name in ("{published.org}/note_f1", "./metrics/note_f1")
]
result = {{
    "rows": len(rows),
    "equal rows": rows[:] == local[:],
    "streamed": next(iter(stream)) == rows[0],
    "scores": scores,
    "equal scores": scores[0] == scores[1],
}}
"""
    result = published.client.python(code)
    assert result["rows"] == 18
    assert result["equal rows"]
    assert result["streamed"]
    assert 0 < result["scores"][0]["note_f1"] < 1
    assert result["equal scores"]


@pytest.mark.slow
def test_a_published_model_is_loaded_by_its_id(house: House, copy_of_ours: Path) -> None:
    pytest.importorskip("torch")
    assert house.publish("models/anticipation_rnn", cwd=copy_of_ours).code == 0
    weights = house.hub.repo("model", f"{house.org}/anticipation_rnn").head.tree["model.safetensors"]
    assert weights.sha256
    assert weights.size > 3_000_000
    code = f"""
import torch
from music_evals.models.anticipation_rnn import AnticipationRNN
names = "{house.org}/anticipation_rnn", "./models/anticipation_rnn"
models = [AnticipationRNN.from_pretrained(name) for name in names]
states = [model.state_dict() for model in models]
result = all(torch.equal(states[0][key], value) for key, value in states[1].items())
"""
    assert house.client.python(code) is True


@pytest.mark.slow
def test_the_whole_repository_is_published_by_the_lines_of_the_page_of_commands(
    house: House, copy_of_ours: Path, tmp_path: Path
) -> None:
    """Those on the Hub, as they stand, in a clone whose commits are pushed."""
    pytest.importorskip("torch")
    clone = tmp_path / "clone"
    shutil.copytree(copy_of_ours, clone)
    for command in ("init -q", "add .", "commit -qm all", "update-ref refs/remotes/origin/main HEAD"):
        git(clone, *command.split())
    small = ["--baselines", "none", "--seeds", "1", "--resamples", "20", "--no-report", "--out", "results/jsb"]
    place = ["--dataset", "jsb_chorales", "--config", "musib_official", "--model", "models/anticipation_rnn"]
    assert house.cli("inpainting", *place, *small, cwd=clone).code == 0
    page = (clone / "docs" / "commands.md").read_text()
    (block,) = re.findall(r"^```bash\n(music-evals publish .*?)^```", page, re.DOTALL | re.MULTILINE)
    lines = block.replace("\\\n", " ").replace("my-org", house.org).splitlines()
    assert len(lines) == 3
    commands = [shlex.split(line, comments=True)[1:] for line in lines]
    done = [house.cli(*command, cwd=clone) for command in commands]
    for line, answer in zip(lines, done, strict=True):
        assert answer.code == 0, f"{line}\n{answer.stderr}"
        assert ("Nothing was sent." in answer.stdout) == ("--dry-run" in line)
    whole = done[1].stdout
    assert "failed" not in whole
    again = house.cli(*commands[1], cwd=clone).stdout
    assert again.count("unchanged") == whole.count(" published ") > 50
    assert again.count("hardware zero-a10g is there") == whole.count("hardware zero-a10g was asked for") == 7
