"""Results to a model card, with the real client against a local Hub."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from music_evals.errors import InvalidInputError
from music_evals.hub.client import Hub
from music_evals.hub.pushing import push_results
from music_evals.yaml_files import load_yaml

from .hub_house import House

CARD = """---
license: mit   # a remark
tags: [music]
model-index:
- name: other name
  results:
  - task: {type: music-inpainting}
    dataset: {type: else/where, name: else, config: one, split: test}
    metrics:
    - {type: note_f1, value: 0.5, verified: true}
datasets: [else/where]
---

# A model
"""
EVAL = """name: Tiny
description: A tiny benchmark.
evaluation_framework: music_evals
tasks:
- {id: one_test_note_f1, config: one, split: test}
- {id: one_test_silence_divergence, config: one, split: test}
- {id: two_test_note_f1, config: two, split: test}
"""
MANIFEST = '{"files": {"data/one/test-00000-of-00001.parquet": {"rows": 18}}}'
RESULTS: dict[str, Any] = {
    "task": "inpainting",
    "protocol": None,
    "variant": "corrected",
    "dataset": {"id": "tiny_set", "config": "one", "split": "test", "revision": None, "fingerprint": "9a70cc11"},
    "extractors": {},
    "seeds": [0, 1],
    "options": {"limit": None, "decoding": None, "temperature": None},
    "versions": {"music_evals": "0.1.0"},
    "intervals": {"confidence": 0.95, "n_resamples": 50, "seed": 0, "clusters": "song"},
    "systems": {
        "mine": {"role": "model", "content_hash": "25820029", "seeds": [0, 1], "temperature": 0.25},
        "copy_past": {"role": "baseline", "content_hash": "07b5fcfd", "seeds": [0]},
        "reference": {"role": "control", "content_hash": "28d1f903", "seeds": [0]},
    },
    "tables": {
        "all": {
            "scores": {
                "mine": {
                    "note_f1": {"value": 0.123456, "low": 0.1, "high": 0.2, "n": 18, "n_defined": 18, "n_groups": 6},
                    "silence_divergence": {
                        "value": 0.05, "low": 0.01, "high": 0.08, "null": 0.03, "n": 18, "n_defined": 18,
                        "n_groups": 6, "n_clusters": 5.5,
                    },
                    "pitch_accuracy": {"value": None, "low": None, "high": None, "n": 18, "n_defined": 0},
                    "inpainting_nll": {"value": 0.5, "low": 0.4, "high": 0.6, "n": 18, "n_defined": 18},
                },
            },
        },
    },
    "failures": [],
}  # fmt: skip


AS_WRITTEN = """
import json
from pathlib import Path
from types import SimpleNamespace
from music_evals.hub import pushing

def as_written(path):
    return SimpleNamespace(results=json.loads((Path(path) / "results.json").read_text()))

pushing.load_results = as_written
"""
AS_EVER = """
from music_evals.benchmark import load
from music_evals.hub import pushing
pushing.load_results = load.load_results
"""


@pytest.fixture
def hub(house: House) -> House:
    """A house with a dataset and a model."""
    house.hub.put("dataset", f"{house.org}/tiny_set", {"eval.yaml": EVAL, "manifest.json": MANIFEST})
    house.hub.put("model", f"{house.org}/mine", {"README.md": CARD})
    return house


@pytest.fixture(autouse=True)
def as_written(house: House) -> Iterator[None]:
    """Take results without their records: they are made by hand here, and checked in `benchmark.load`, tested there."""
    house.client.python(AS_WRITTEN)
    yield
    house.client.python(AS_EVER)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run."""
    (tmp_path / "results.json").write_text(json.dumps(RESULTS))
    return tmp_path


def changed(run: Path, **values: Any) -> Path:
    """Write other results; dots in a name lead into them."""
    results = copy.deepcopy(RESULTS)
    for name, value in values.items():
        *path, last = name.split("__")
        inner = results
        for key in path:
            inner = inner[key]
        inner[last] = value
    (run / "results.json").write_text(json.dumps(results))
    return run


def push(house: House, run: Path, *more: str, token: str | None = "", model: str = "mine") -> Any:
    where = ("--model", f"{house.org}/{model}", "--dataset", f"{house.org}/tiny_set")
    return house.cli("push", str(run), *where, *more, token=token)


def head(card: str) -> dict[str, Any]:
    return load_yaml(card.split("---")[1], "the card")


def entries(house: House, revision: str = "main") -> list[dict[str, Any]]:
    return load_yaml(
        house.hub.text("model", f"{house.org}/mine", ".eval_results/tiny_set.yaml", revision), "the results"
    )


def test_one_commit_holds_both_formats_and_leaves_the_rest(hub: House, run: Path) -> None:
    done = push(hub, run, "--source", "https://example.org/run")
    assert done.code == 0, done.stderr
    repo = hub.hub.repo("model", f"{hub.org}/mine")
    assert repo.history()[0] == f"Add results on {hub.org}/tiny_set, one test"
    assert repo.history()[1] == "by hand"
    card = hub.hub.text("model", repo.name, "README.md")
    assert "license: mit   # a remark\ntags: [music]\n" in card
    assert card.endswith("datasets: [else/where]\n---\n\n# A model\n")
    (model,) = head(card)["model-index"]
    assert model["name"] == "other name"
    old, new = model["results"]
    assert old["metrics"] == [{"type": "note_f1", "value": 0.5, "verified": True}]
    assert new["task"]["type"] == "music-inpainting"
    assert new["dataset"] == {"name": "tiny set", "type": f"{hub.org}/tiny_set", "config": "one", "split": "test"}
    assert new["source"]["url"] == "https://example.org/run"
    assert {metric["type"]: metric["value"] for metric in new["metrics"]} == {
        "note_f1": 0.1235, "silence_divergence": 0.05, "inpainting_nll": 0.5,
    }  # fmt: skip
    assert new["metrics"][1]["args"] == {
        "variant": "corrected", "confidence": 0.95, "groups": "song", "low": 0.01, "high": 0.08, "null": 0.03,
        "n": 18, "n_defined": 18, "n_groups": 6, "n_clusters": 5.5,
    }  # fmt: skip
    first, second = entries(hub)
    assert first["dataset"] == {"id": f"{hub.org}/tiny_set", "task_id": "one_test_note_f1"}
    assert (first["value"], second["value"]) == (0.1235, 0.05)
    assert first["source"] == {"url": "https://example.org/run", "name": "mine, results"}
    for part in (
        "config one, split test", "variant corrected", "95 % interval 0.1 to 0.2, clustered by song",
        "18 windows, 18 define it", "content of the data 9a70cc11", "seeds 0, 1", "temperature 0.25",
        "content_hash 25820029", "music_evals 0.1.0",
    ):  # fmt: skip
        assert part in first["notes"]
    assert "noise floor 0.03" in second["notes"]
    assert "6 independent groups (song)" in second["notes"]
    assert "no task in eval.yaml, so in the model-index only: inpainting_nll" in done.stderr
    assert "undefined, so left out: pitch_accuracy" in done.stderr
    assert "the entries name no revision" in done.stderr


def test_the_client_reads_what_was_written(hub: House, run: Path) -> None:
    assert push(hub, run).code == 0
    code = f"""
from huggingface_hub import ModelCard, hf_hub_download, parse_eval_result_entries
import yaml
card = ModelCard.load("{hub.org}/mine")
path = hf_hub_download("{hub.org}/mine", ".eval_results/tiny_set.yaml")
found = parse_eval_result_entries(yaml.safe_load(open(path)))
result = [len(card.data.eval_results), [entry.task_id for entry in found]]
"""
    assert hub.client.python(code) == [4, ["one_test_note_f1", "one_test_silence_divergence"]]


def test_counts_and_interval_are_read_back_and_kept(hub: House, run: Path) -> None:
    """Both formats as the client reads them, and the card after somebody else edited it with the client."""
    assert push(hub, run).code == 0
    code = f"""
from huggingface_hub import ModelCard, hf_hub_download, parse_eval_result_entries
import yaml
card = ModelCard.load("{hub.org}/mine")
card.data.language = "en"
again = ModelCard(str(card))
path = hf_hub_download("{hub.org}/mine", ".eval_results/tiny_set.yaml")
found = parse_eval_result_entries(yaml.safe_load(open(path)))
result = [
    [[one.metric_type, one.metric_args] for one in card_.data.eval_results if one.dataset_type != "else/where"]
    for card_ in (card, again)
] + [[one.notes for one in found]]
"""
    first, again, notes = hub.client.python(code)
    assert first == again
    of_f1 = dict(first)["note_f1"]
    assert {key: of_f1[key] for key in ("n", "n_defined", "n_groups", "low", "high", "confidence", "groups")} == {
        "n": 18, "n_defined": 18, "n_groups": 6, "low": 0.1, "high": 0.2, "confidence": 0.95, "groups": "song",
    }  # fmt: skip
    for note in notes:
        assert "18 windows" in note
        assert "6 independent groups (song)" in note
        assert "95 % interval" in note


def test_a_value_without_interval_says_so(hub: House, run: Path) -> None:
    """Of two recordings of one song, say: the value alone would look as sure as any."""
    cell = {"value": 1.0, "low": None, "high": None, "n": 18, "n_defined": 2, "n_groups": 1, "n_clusters": 1.0}
    changed(run, tables__all__scores__mine={"note_f1": cell})
    assert push(hub, run).code == 0
    (entry,) = entries(hub)
    assert "no interval" in entry["notes"]
    assert "1 independent groups (song); 18 windows, 2 define it" in entry["notes"]
    (model,) = head(hub.hub.text("model", f"{hub.org}/mine", "README.md"))["model-index"]
    args = model["results"][1]["metrics"][0]["args"]
    assert (args["n"], args["n_defined"], args["n_groups"]) == (18, 2, 1)
    assert "low" not in args


def test_all_that_is_lacking_is_said_at_once(hub: House, run: Path) -> None:
    changed(run, dataset__config=None, dataset__split=None)
    guest = hub.hub.add_user("guest")
    refused = hub.cli("push", str(run), "--model", f"{hub.org}/mine", "--source", "x.html", token=guest)
    assert refused.code == 2
    for part in ("with --dataset", "with --config", "with --split", "source must be", f"no member of {hub.org}"):
        assert part in refused.stderr
    gone = hub.cli("push", str(run), "--model", f"{hub.org}/gone", "--dataset", f"{hub.org}/none", token=guest)
    assert gone.code == 2
    for part in ("with --config", f"no model {hub.org}/gone", f"no dataset {hub.org}/none", "is no member of"):
        assert part in gone.stderr
    assert f"hf upload {hub.org}/none FOLDER . --repo-type dataset" in gone.stderr
    where = ["--config", "one", "--split", "test"]
    hidden = hub.cli("push", str(run), "--model", f"{hub.org}/gone", "--dataset", f"{hub.org}/none", *where)
    assert hidden.code == 1
    assert f"no model {hub.org}/gone" in hidden.stderr
    assert f"no dataset {hub.org}/none" in hidden.stderr
    assert push(hub, run, *where).code == 0


def test_a_study_of_editing_systems_is_proposed_and_never_committed(hub: House, run: Path, tmp_path: Path) -> None:
    judged = tmp_path / "study" / "preserved"
    judged.mkdir(parents=True)
    (judged / "results.json").write_text((run / "results.json").read_text())
    (tmp_path / "study" / "musecpbench.json").write_text("{}")
    before = hub.hub.repo("model", f"{hub.org}/mine").history()
    for place in (judged.parent, judged):
        done = push(hub, place)
        assert done.code == 0, done.stderr
        assert "/discussions/" in done.stdout
        assert hub.hub.repo("model", f"{hub.org}/mine").history() == before


def test_the_same_again_sends_nothing(hub: House, run: Path) -> None:
    assert push(hub, run).code == 0
    before = hub.hub.text("model", f"{hub.org}/mine", ".eval_results/tiny_set.yaml")
    other_day = before.replace(entries(hub)[0]["date"], "2020-01-01")
    hub.hub.put("model", f"{hub.org}/mine", {".eval_results/tiny_set.yaml": other_day})
    mark = len(hub.hub.log)
    done = push(hub, run)
    assert done.code == 0
    assert "holds these results already; nothing was sent" in done.stdout
    assert {asked.method for asked in hub.hub.since(mark)} <= {"GET", "HEAD"}


@pytest.mark.slow
def test_a_value_changes_only_when_asked_to(hub: House, run: Path) -> None:
    assert push(hub, run).code == 0
    changed(run, tables__all__scores__mine__note_f1__value=0.3)
    done = push(hub, run)
    assert done.code == 2
    assert f"note_f1 on {hub.org}/tiny_set one test, variant corrected: 0.1235 would become 0.3" in done.stderr
    assert f"one_test_note_f1 of {hub.org}/tiny_set: 0.1235 would become 0.3" in done.stderr
    assert entries(hub)[0]["value"] == 0.1235
    looked = push(hub, run, "--dry-run")
    assert looked.code == 0
    assert "2 values on the card would change, which needs --overwrite" in looked.stderr
    assert push(hub, run, "--overwrite").code == 0
    assert [entry["value"] for entry in entries(hub)] == [0.3, 0.05]
    (model,) = head(hub.hub.text("model", f"{hub.org}/mine", "README.md"))["model-index"]
    assert len(model["results"]) == 2


def test_a_dry_run_prints_the_diff(hub: House, run: Path) -> None:
    mark = len(hub.hub.log)
    done = push(hub, run, "--dry-run", token=None)
    assert done.code == 0, done.stderr
    assert "--- a/README.md\n+++ b/README.md\n" in done.stdout
    assert "--- /dev/null\n+++ b/.eval_results/tiny_set.yaml\n" in done.stdout
    assert "+    task_id: one_test_note_f1" in done.stdout
    assert "\n-- name: other name" not in done.stdout
    assert {asked.method for asked in hub.hub.since(mark)} <= {"GET", "HEAD"}
    told = json.loads(push(hub, run, "--dry-run", "--json").stdout)
    assert set(told["files"]) == {"README.md", ".eval_results/tiny_set.yaml"}
    assert told["tasks"] == {"note_f1": "one_test_note_f1", "silence_divergence": "one_test_silence_divergence"}


def test_a_guest_proposes_once_and_the_owner_merges(hub: House, run: Path) -> None:
    guest = hub.hub.add_user("guest")
    refused = push(hub, run, token=guest)
    assert refused.code == 1
    assert "propose the change by a pull request; --pr proposes the change" in refused.stderr
    for _ in range(2):
        done = push(hub, run, "--pr", token=guest)
        assert done.code == 0, done.stderr
        assert done.stdout.endswith(f"{hub.hub.url}/{hub.org}/mine/discussions/1\n")
    repo = hub.hub.repo("model", f"{hub.org}/mine")
    assert len(repo.requests) == 1
    assert ".eval_results/tiny_set.yaml" not in repo.head.tree
    assert len(entries(hub, "refs/pr/1")) == 2
    code = f"""
from huggingface_hub import HfApi
api = HfApi()
found = [(request.num, request.status) for request in api.get_repo_discussions({repo.name!r})]
api.merge_pull_request({repo.name!r}, 1)
result = [found, api.get_discussion_details({repo.name!r}, 1).status]
"""
    assert hub.client.python(code, token=hub.token) == [[[1, "open"]], "merged"]
    assert len(entries(hub)) == 2
    assert "holds these results already" in push(hub, run).stdout


def test_an_open_pull_request_gets_what_is_new(hub: House, run: Path) -> None:
    guest = hub.hub.add_user("guest")
    assert push(hub, run, "--pr", token=guest).code == 0
    changed(run, tables__all__scores__mine__note_f1__value=0.3)
    done = push(hub, run, "--pr", token=guest)
    assert done.code == 0, done.stderr
    assert done.stdout.endswith(f"{hub.hub.url}/{hub.org}/mine/discussions/1\n")
    repo = hub.hub.repo("model", f"{hub.org}/mine")
    assert len(repo.requests) == 1
    assert [entry["value"] for entry in entries(hub, "refs/pr/1")] == [0.3, 0.05]
    assert ".eval_results/tiny_set.yaml" not in repo.head.tree


def test_a_revision_of_the_dataset_is_named(hub: House, run: Path) -> None:
    name = f"{hub.org}/tiny_set"
    sha = hub.hub.repo("dataset", name).head.sha
    hub.hub.put("dataset", name, {"eval.yaml": EVAL.replace("one_test_note_f1", "one_test_gone")})
    changed(run, dataset__id=name, dataset__revision=sha)
    done = hub.cli("push", str(run), "--model", f"{hub.org}/mine")
    assert done.code == 0, done.stderr
    assert entries(hub)[0]["dataset"] == {"id": name, "task_id": "one_test_note_f1", "revision": sha}


def test_entries_stay_in_the_file_that_they_are_in(hub: House, run: Path) -> None:
    theirs = [
        {"dataset": {"id": f"{hub.org}/tiny_set", "task_id": "one_test_note_f1"}, "value": 0.1235, "verifyToken": "t"},
        {"dataset": {"id": "else/where", "task_id": "x"}, "value": 3, "more": "unknown"},
    ]
    hub.hub.put("model", f"{hub.org}/mine", {".eval_results/all.yaml": json.dumps(theirs)})
    assert push(hub, run).code == 0
    first, second = load_yaml(hub.hub.text("model", f"{hub.org}/mine", ".eval_results/all.yaml"), "the results")
    assert first["verifyToken"] == "t"
    assert "interval" in first["notes"]
    assert second == theirs[1]
    assert [entry["dataset"]["task_id"] for entry in entries(hub)] == ["one_test_silence_divergence"]


def test_another_variant_has_no_rank(hub: House, run: Path) -> None:
    assert push(hub, run).code == 0
    done = push(hub, changed(run, variant="official"))
    assert done.code == 0, done.stderr
    assert "scores made with variant official go into the model-index only" in done.stderr
    (model,) = head(hub.hub.text("model", f"{hub.org}/mine", "README.md"))["model-index"]
    variants = [metric["args"]["variant"] for metric in model["results"][-1]["metrics"]]
    assert variants == ["corrected"] * 3 + ["official"] * 3
    assert len(entries(hub)) == 2


def test_a_model_without_a_card_and_a_dataset_without_tasks(hub: House, run: Path) -> None:
    hub.hub.put("model", f"{hub.org}/bare", {"config.json": "{}"})
    hub.hub.put("dataset", f"{hub.org}/plain", {"README.md": "# plain\n"})
    done = hub.cli("push", str(run), "--model", f"{hub.org}/bare", "--dataset", f"{hub.org}/plain")
    assert done.code == 0, done.stderr
    assert "has no eval.yaml" in done.stderr
    repo = hub.hub.repo("model", f"{hub.org}/bare")
    assert set(repo.head.tree) == {".gitattributes", "config.json", "README.md"}
    assert head(hub.hub.text("model", repo.name, "README.md"))["model-index"][0]["name"] == "bare"


def test_results_of_the_other_form(hub: House, run: Path) -> None:
    cell = {"value": 0.4, "low": 0.3, "high": 0.5, "n": 18, "n_defined": 17, "n_failed": 0, "n_groups": 9}
    scale = {"title": "Note F1", "companion": False}
    results = {
        **{key: RESULTS[key] for key in ("variant", "intervals", "versions", "failures")},
        "task": "preservation",
        "dataset": {"id": "pairs.csv", "config": None, "split": None, "revision": None},
        "extractors": {"features": {"beats": {"backend": "own", "version": "2", "parameters": {}}}},
        "systems": {"mine": {"role": "system"}, "same music": {"role": "control"}},
        "scales": {"note_f1": scale, "more": {**scale, "companion": True}},
        "wording": {"items": "pairs"},
        "scores": {"mine": {"note_f1": cell, "more": cell}},
    }
    (run / "results.json").write_text(json.dumps(results))
    done = push(hub, run, "--config", "one", "--split", "test")
    assert done.code == 0, done.stderr
    (entry,) = entries(hub)
    assert entry["dataset"]["task_id"] == "one_test_note_f1"
    assert "18 pairs, 17 define it; beats by own 2; music_evals 0.1.0" in entry["notes"]
    (model,) = head(hub.hub.text("model", f"{hub.org}/mine", "README.md"))["model-index"]
    assert model["results"][1]["task"]["type"] == "music-editing"


OTHER = {"role": "model", "content_hash": "11111111", "seeds": [0]}


def with_other(run: Path, value: float) -> Path:
    """Write results that hold a second model."""
    cells = {"note_f1": {"value": value, "low": None, "high": None, "n": 18, "n_defined": 18}}
    return changed(run, systems__other=OTHER, tables__all__scores__other=cells)


@pytest.mark.slow
def test_another_system_does_not_take_over_a_card(hub: House, run: Path) -> None:
    assert push(hub, run).code == 0
    with_other(run, 0.4)
    for more in ((), ("--overwrite",)):
        done = push(hub, run, "--system", "other", *more)
        assert done.code == 2
        assert f"on {hub.org}/mine values of mine would become those of other" in done.stderr
        assert "--adopt with it those of another system" in done.stderr
    looked = push(hub, run, "--system", "other", "--overwrite", "--dry-run")
    assert looked.code == 0
    assert "values of mine would become others, which needs --adopt and --overwrite" in looked.stderr
    assert entries(hub)[0]["value"] == 0.1235
    assert push(hub, run, "--system", "other", "--adopt").code == 2  # it adopts nothing by itself
    assert push(hub, run, "--system", "other", "--overwrite", "--adopt").code == 0
    assert entries(hub)[0]["value"] == 0.4

    with_other(run, 0.3)  # from now on the card says whose its values are
    assert push(hub, run, "--system", "other", "--overwrite").code == 0
    back = push(hub, run, "--system", "mine", "--overwrite")
    assert "values of other would become those of mine" in back.stderr


def test_a_system_of_another_name_needs_no_adoption_for_its_own_values(hub: House, run: Path) -> None:
    hub.hub.put("model", f"{hub.org}/theirs", {"config.json": "{}"})
    assert push(hub, run, "--system", "mine", model="theirs").code == 0
    changed(run, tables__all__scores__mine__note_f1__value=0.3)
    assert push(hub, run, "--system", "mine", "--overwrite", model="theirs").code == 0
    (model,) = head(hub.hub.text("model", f"{hub.org}/theirs", "README.md"))["model-index"]
    assert {metric["args"]["system"] for metric in model["results"][0]["metrics"]} == {"mine"}


def test_a_card_with_a_byte_order_mark_keeps_its_one_head(hub: House, run: Path) -> None:
    hub.hub.put("model", f"{hub.org}/mine", {"README.md": "\ufeff" + CARD})
    assert push(hub, run).code == 0
    card = hub.hub.text("model", f"{hub.org}/mine", "README.md")
    assert card.startswith("\ufeff---\nlicense: mit   # a remark\n")
    assert card.count("---\n") == 2
    assert len(head(card)["model-index"][0]["results"]) == 2


def test_metrics_keep_their_order(hub: House, run: Path) -> None:
    assert push(hub, run).code == 0
    changed(run, tables__all__scores__mine__note_f1__value=0.3)
    assert push(hub, run, "--overwrite").code == 0
    (model,) = head(hub.hub.text("model", f"{hub.org}/mine", "README.md"))["model-index"]
    order = [metric["type"] for metric in model["results"][1]["metrics"]]
    assert order == ["note_f1", "silence_divergence", "inpainting_nll"]


@pytest.mark.slow
@pytest.mark.usefixtures("patience")
def test_a_hub_that_hangs_is_waited_for_aloud(hub: House, run: Path) -> None:
    hub.hub.fault(f"GET /{hub.org}/mine/resolve", "hang", times=100)
    done = push(hub, run)
    assert done.code == 1
    assert f"waiting for the Hub for 0 s: reading README.md of model {hub.org}/mine" in done.stderr
    assert f"reading README.md of model {hub.org}/mine: the connection to the Hub failed" in done.stderr


def test_a_system_without_a_score_changes_nothing(hub: House, run: Path) -> None:
    with_other(run, float("nan"))
    done = push(hub, run, "--system", "other")
    assert done.code == 2
    assert "no score of other is defined" in done.stderr


@pytest.mark.parametrize(
    ("said", "wanted"), [({"source": "results.html"}, "starts with https"), ({"date": "tomorrow"}, "YYYY-MM-DD")]
)
def test_what_no_entry_may_say(said: dict[str, str], wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hub, "look", lambda *_: None)
    with pytest.raises(InvalidInputError, match=wanted):
        push_results(RESULTS, "o/m", dry_run=True, **said)


@pytest.mark.slow
def test_from_a_published_dataset_and_model_to_a_score_on_the_card(
    house: House, tmp_path: Path, copy_of_ours: Path
) -> None:
    pytest.importorskip("torch")
    assert house.publish("datasets_scripts/jsb_chorales", "models/anticipation_rnn", cwd=copy_of_ours).code == 0
    dataset, model = f"{house.org}/jsb_chorales", f"{house.org}/anticipation_rnn"
    where = ["--dataset", dataset, "--config", "musib_official", "--model", model, "--out", str(tmp_path)]
    more = ["--baselines", "none", "--seeds", "1", "--resamples", "20", "--no-report"]
    judged = house.cli("inpainting", *where, *more)
    assert judged.code == 0, judged.stderr
    done = house.cli("push", str(tmp_path), "--model", model)
    assert done.code == 0, done.stderr
    found = load_yaml(house.hub.text("model", model, ".eval_results/jsb_chorales.yaml"), "the results")
    sha = house.hub.repo("dataset", dataset).head.sha
    assert {entry["dataset"]["revision"] for entry in found} == {sha}
    assert "musib_official_test_note_f1" in {entry["dataset"]["task_id"] for entry in found}
    (index,) = head(house.hub.text("model", model, "README.md"))["model-index"]
    assert {result["dataset"]["config"] for result in index["results"]} == {"musib", "musib_official"}
    assert house.publish("models/anticipation_rnn", cwd=copy_of_ours).stdout.count("unchanged") == 1


def test_what_goes_wrong_has_a_name(hub: House, run: Path) -> None:
    reader = hub.hub.add_user("reader", hub.org, role="read")
    for arguments, said in [
        ({"token": None}, "there is no token"),
        ({"token": "hf_wrong"}, "refuses the token"),
        ({"token": reader}, "may only read"),
        ({"model": "gone"}, f"there is no model {hub.org}/gone"),
    ]:
        done = push(hub, run, **arguments)
        assert done.code == 1
        assert said in done.stderr
    gone = hub.cli("push", str(run), "--model", f"{hub.org}/mine", "--dataset", f"{hub.org}/gone")
    assert (gone.code, "there is no dataset" in gone.stderr) == (1, True)
    for fault, said in [("412", "another commit was made in between"), ("cut", "the connection to the Hub failed")]:
        hub.hub.fault("POST .*/mine/commit", fault)
        broken = push(hub, run)
        assert broken.code == 1
        assert said in broken.stderr
    assert hub.hub.repo("model", f"{hub.org}/mine").history()[0] == "by hand"


def test_a_parent_that_moved_is_a_conflict(hub: House) -> None:
    """The server refuses as the Hub does; the client passes it on."""
    parent = hub.hub.repo("model", f"{hub.org}/mine").head.parent
    code = f"""
from music_evals.hub.client import Hub, Repository
try:
    Hub().commit(Repository("model", "{hub.org}/mine"), {{"a.txt": b"a"}}, title="late", parent="{parent}")
except Exception as error:
    result = type(error).__name__
"""
    assert hub.client.python(code, token=hub.token) == "HubConflictError"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"failures": [{"item": "a", "system": "mine", "error": "it fell"}]}, "1 results of mine failed"),
        ({"options__limit": 4}, "only the first 4 items were judged"),
        ({"tables__all__scores__mine": {"note_f1": RESULTS["tables"]["all"]["scores"]["mine"]["note_f1"] | {"n": 17}}},
         "17 of the 18 rows"),
        ({"dataset__id": "known_edits"}, "kinds of edit"),
        ({"dataset__split": None}, "which split of the dataset they were made on; name it with --split"),
        ({"dataset__revision": "a" * 40}, "and not on org"),
    ],
)  # fmt: skip
def test_scores_that_belong_on_no_card(hub: House, run: Path, values: dict[str, Any], said: str) -> None:
    done = push(hub, changed(run, **values))
    assert done.code == 2
    assert said in done.stderr
    assert hub.hub.repo("model", f"{hub.org}/mine").history()[0] == "by hand"


def test_a_control_and_a_name_that_is_not_there(hub: House, run: Path) -> None:
    assert "is a control" in push(hub, run, "--system", "reference").stderr
    assert "did you mean mine?" in push(hub, run, "--system", "mime").stderr
    assert "the model must be the id of a repository" in hub.cli("push", str(run), "--model", "mine").stderr
