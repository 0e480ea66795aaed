"""The tagger: sizes of the paper, dictionary, decoding, training that resumes, and the way from sounds to tags."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from music_evals.annotations import DIMENSIONS, SCORED
from music_evals.errors import (
    CorruptRecordsError,
    InvalidInputError,
    InvalidTagsError,
    NoDataError,
    PairCountError,
    UnknownNameError,
    UnreadableFileError,
)
from music_evals.models.encoders.music import EncoderSettings, load_music_encoder
from music_evals.models.encoders.precomputed import write_features
from music_evals.models.music_tagger import MusicTagger, MusicTaggerConfig, probe_network
from music_evals.models.tag_vocabulary import TagVocabulary, read_clusters, row_tags
from music_evals.models.training import taggers, train_from_file
from music_evals.models.training.recipe import TaggerData, TaggerTraining, build_recipe, read_sections
from music_evals.models.training.taggers import SCORES, load_songs, positive_weights, tag_scores, train_tagger
from music_evals.protocols import TAGGERS, Tagger, load_plugin

pytestmark = pytest.mark.usefixtures("one_thread")

SHIPPED = Path(__file__).parents[2] / "models" / "music_tagger" / "train.yaml"
SIZE = 16  # of the precomputed features of most tests


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("MUSIC_EVALS_CACHE", str(tmp_path / "user_cache"))


def song_row(index: int) -> dict:
    """A row of caimd: in each dimension a tag of its own and one that songs share; themes that must not be learnt."""
    row = {"id": f"s_{index}", "title": f"曲{index}"}
    for group, names in DIMENSIONS.items():
        tags = {name: {"tags": [f"{name}-{index}", "共有" if index % 2 else "常见"], "text": None} for name in names}
        tags["lyric_themes"]["tags"] = [f"主题{index}"]
        row[group] = {"overall_text": "", "dimensions": tags}
    return row


def vocabulary(**tags) -> TagVocabulary:
    return TagVocabulary({"amateur": {**dict.fromkeys(SCORED["amateur"], ()), **tags}})


# --- sizes


@pytest.mark.parametrize(
    ("input_size", "outputs", "millions"),
    [
        (768, 9691, 287),
        (768, 14162, 324),
        (1024, 14162, 326),
        (4800, 14162, 357),
        (19200, 9691, 438),
        (19200, 14162, 475),
    ],
)
def test_published_sizes(input_size, outputs, millions):
    with torch.device("meta"):
        network = probe_network(input_size, 8192, outputs)
    layers = [(input_size, 8192), *[(8192, 8192)] * 3, (8192, outputs)]
    n = sum(parameter.numel() for parameter in network.parameters())
    assert n == sum(fan_in * fan_out + fan_out for fan_in, fan_out in layers)
    assert round(n / 1e6) == millions
    kinds = [type(layer).__name__ for layer in network]
    assert kinds == ["Linear", "ReLU"] * 4 + ["Linear"]


def test_config_is_checked():
    assert MusicTaggerConfig().hidden_size == 8192
    for wrong in ({"threshold": "high"}, {"groups": 2}, {"encoder": "jukebox"}, {"hidden_size": None}):
        with pytest.raises(InvalidInputError, match=f"^{next(iter(wrong))} must be "):
            MusicTaggerConfig(**wrong)
    for wrong in ({"threshold": 1.5}, {"hidden_size": 0}, {"groups": ("amateur", "amateur")}, {"model_type": "x"}):
        with pytest.raises(InvalidInputError):
            MusicTaggerConfig(**wrong)
    with pytest.raises(UnknownNameError, match="professional"):
        MusicTaggerConfig(groups=("professionals",))
    with pytest.raises(UnknownNameError, match="mert-95m"):
        MusicTaggerConfig(encoder={"name": "mert95"})


# --- dictionary and decoding


def test_order_of_the_published_groups():
    """`Group order` of the released code: ten groups, the themes of the lyrics left out."""
    expected = ["uniqueness", "tempo", "expressive", "emotion", "instrument", "vocal", "audio", "purpose", "culture"]
    names = list(vocabulary(song_purpose=("KTV",)).columns("amateur"))
    assert len(names) == 10
    assert all(word in name for word, name in zip([*expected, "audience"], names, strict=True))


def test_vocabulary_is_built_from_training_songs():
    rows = [row_tags(song_row(index), "amateur") for index in (1, 2, 3)]
    built = TagVocabulary.build({"amateur": rows})
    assert built.tags["amateur"]["song_purpose"] == (
        "共有",
        "song_purpose-1",
        "song_purpose-2",
        "song_purpose-3",
        "常见",
    )
    assert built.size("amateur") == 50
    common = TagVocabulary.build({"amateur": rows}, min_count=2)
    assert common.tags["amateur"]["song_purpose"] == ("共有",)
    with pytest.raises(NoDataError, match="min_count"):
        TagVocabulary.build({"amateur": rows}, min_count=4)


def test_targets():
    words = vocabulary(song_purpose=("KTV", "sleep"), perception_of_tempo=("快",))
    found = words.encode("amateur", [{"song_purpose": ["sleep", "new"]}, {"perception_of_tempo": ["快"]}])
    assert found.tolist() == [[False, False, True], [True, False, False]]


def test_decoding_by_hand():
    words = vocabulary(song_purpose=("a", "b", "c"), perception_of_tempo=("x", "y"))
    probabilities = np.array([0.1, 0.3, 0.5, 0.9, 0.7])  # x y | a b c
    found = words.decode("amateur", probabilities, 0.5)
    assert found["song_purpose"] == ["b", "c"], "above, not at the threshold"
    assert found["perception_of_tempo"] == ["y"], "nothing above it: the most likely"
    assert found["target_audience"] == [], "a dimension without tags has none"
    assert words.decode("amateur", probabilities, 0.8)["song_purpose"] == ["b"]
    assert words.decode("amateur", probabilities, 0.95)["song_purpose"] == ["b"]


@given(hnp.arrays(np.float64, 5, elements=st.floats(0, 1)), st.floats(0, 1), st.floats(0, 1))
def test_a_lower_threshold_never_gives_less(probabilities, one, other):
    words = vocabulary(song_purpose=("a", "b", "c"), perception_of_tempo=("x", "y"))
    few, many = (words.decode("amateur", probabilities, theta) for theta in sorted((one, other), reverse=True))
    for name in ("song_purpose", "perception_of_tempo"):
        assert set(few[name]) <= set(many[name])
        assert few[name]


def test_vocabulary_survives_its_file():
    words = vocabulary(song_purpose=("助眠", "KTV"))
    assert TagVocabulary.from_json(words.to_json()).tags == words.tags
    for text in ("{", "[]", '{"amateur": {}}', '{"amateur": 3}', '{"nobody": {}}'):
        with pytest.raises(UnreadableFileError, match=r"vocabulary\.json"):
            TagVocabulary.from_json(text)


def test_vocabulary_is_checked():
    with pytest.raises(InvalidTagsError, match="twice"):
        vocabulary(song_purpose=("KTV", "KTV"))
    with pytest.raises(UnknownNameError, match="song_purpose"):
        vocabulary(song_purposes=("KTV",))
    with pytest.raises(InvalidInputError, match="no tag"):
        vocabulary()
    with pytest.raises(InvalidTagsError):
        vocabulary(song_purpose="KTV")


@pytest.mark.parametrize(
    "damage",
    [
        lambda row: row.pop("amateur"),
        lambda row: row["amateur"]["dimensions"].pop("song_purpose"),
        lambda row: row["amateur"]["dimensions"]["song_purpose"].update(tags="KTV"),
        lambda row: row["amateur"]["dimensions"]["song_purpose"].update(tags=["KTV", 3]),
        lambda row: row["amateur"]["dimensions"]["song_purpose"].update(tags=None),
    ],
)
def test_rows_without_tags_are_named(damage):
    row = song_row(1)
    damage(row)
    with pytest.raises(InvalidTagsError, match="s_1"):
        row_tags(row, "amateur")


def test_clusters_stand_for_tags(tmp_path):
    path = tmp_path / "clusters.json"
    path.write_text('{"amateur": {"song_purpose": {"song_purpose-1": "用途", "共有": "用途"}}}')
    row = row_tags(song_row(1), "amateur", read_clusters(path))
    assert row["song_purpose"] == ["用途"]
    assert row["target_audience"] == ["target_audience-1", "共有"]
    for text in ("[", "[1]", '{"amateur": {"song_purpose": {"a": 3}}}'):
        path.write_text(text)
        with pytest.raises(UnreadableFileError):
            read_clusters(path)
    path.write_text('{"amateur": {"song_purposes": {}}}')
    with pytest.raises(UnknownNameError, match="song_purpose"):
        read_clusters(path)


# --- scores


def test_scores_by_hand():
    true = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]], bool)
    predicted = np.array([[1, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]], bool)
    found = tag_scores(predicted, true)
    # song 1: precision and recall 1/2; songs 2 and 3 are right throughout, also where there is nothing
    assert found == pytest.approx(((0.5 + 1 + 1) / 3, (0.5 + 1 + 1) / 3, (0.5 + 1 + 1) / 3), abs=1e-4)
    assert tag_scores(~true[2:], true[2:]) == (0, 0, 0)
    assert np.isnan(tag_scores(true[:0], true[:0])).all()


def test_positive_weights_by_hand():
    targets = np.array([[1, 0, 1], [1, 0, 0], [1, 0, 0]], bool)
    assert positive_weights(targets).tolist() == [1.0, 4.0, 2.0]  # counts 3 + 1, 0 + 1, 1 + 1


# --- training


@pytest.fixture
def songs(tmp_path) -> Path:
    """Six songs with precomputed features, a recipe for them."""
    (tmp_path / "songs").mkdir()
    rng = np.random.default_rng(0)
    for index in range(6):
        write_features(tmp_path / "songs", f"s_{index}", rng.standard_normal((3, SIZE)), sample_rate=44100, layer=53)
    write_rows(tmp_path / "rows.jsonl", range(6))
    recipe = {
        "model_type": "music_tagger",
        "model": {"hidden_size": 12},
        "data": {"dataset": "rows.jsonl", "audio": "songs", "encoder": {"name": "jukebox", "size": SIZE}},
        "training": {"epochs": 7, "checkpoint_every": 2, "batch_size": 4, "learning_rate": 0.01},
    }
    (tmp_path / "train.yaml").write_text(json.dumps(recipe))
    return tmp_path / "train.yaml"


def write_rows(path: Path, indices) -> None:
    path.write_text("".join(json.dumps(song_row(index), ensure_ascii=False) + "\n" for index in indices))


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def test_training_writes_a_tagger(songs, tmp_path):
    result = train_from_file(songs, out=tmp_path / "out")
    assert (result.songs, result.epochs, result.scores) == (6, 7, None)
    assert result.outputs == {"professional": 80, "amateur": 80}
    assert {path.name for path in result.folder.iterdir()} >= {"config.json", "vocabulary.json", "model.safetensors"}
    with (result.folder / "run" / "amateur.csv").open() as file:
        log = list(csv.DictReader(file))
    assert [int(row["epoch"]) for row in log] == list(range(1, 8))
    assert float(log[-1]["loss"]) < float(log[0]["loss"])
    tagger = load_plugin(TAGGERS, "music_tagger", "model").from_pretrained(str(result.folder))
    assert isinstance(tagger, Tagger)
    assert not tagger.training
    assert tagger.name == "music_tagger:jukebox"
    assert tagger.groups == ("professional", "amateur")
    found = tagger.tag(tmp_path / "songs" / "s_1.safetensors")
    assert {group: tuple(tags) for group, tags in found.items()} == dict(SCORED)
    assert all(tags for dimensions in found.values() for tags in dimensions.values())


def test_the_loss_is_the_published_one(songs, tmp_path):
    """One epoch, one batch: the loss in the log is `BCEWithLogitsLoss(pos_weight=...)` of the untrained network."""
    seen = []

    def spy(*given, **_):
        network = probe_network(*given)
        seen.append([parameter.detach().clone() for parameter in network.parameters()])
        return network

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(taggers, "probe_network", spy)
        changes = ["training.epochs=1", "training.batch_size=6", "data.groups=amateur"]
        result = train_from_file(songs, changes=changes, out=tmp_path / "out")
    tagger = MusicTagger.from_pretrained(result.folder)
    network = probe_network(SIZE, 12, 80)
    for parameter, value in zip(network.parameters(), seen[0], strict=True):
        parameter.data.copy_(value)
    features = np.stack([tagger.encoder.features(tmp_path / "songs" / f"s_{i}.safetensors") for i in range(6)])
    targets = tagger.vocabulary.encode("amateur", [row_tags(song_row(i), "amateur") for i in range(6)]).astype(
        np.float32
    )
    counts = 1 + targets.sum(0)
    loss = torch.nn.BCEWithLogitsLoss(pos_weight=torch.tensor(counts.max() / counts))
    value = loss(network(torch.from_numpy(features)), torch.from_numpy(targets))
    assert result.losses["amateur"] == pytest.approx(value.item(), rel=1e-5)
    value.backward()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    optimizer.step()
    for name, parameter in network.state_dict().items():
        torch.testing.assert_close(tagger.probes["amateur"].state_dict()[name], parameter, atol=1e-4, rtol=0)


@pytest.mark.parametrize("calls", [3, 4, 10])
def test_a_run_that_was_cut_off_ends_the_same(songs, tmp_path, monkeypatch, calls):
    """Cut off in the first group, just before a checkpoint or after it, and in the second group."""
    train_from_file(songs, out=tmp_path / "whole")
    run, count = taggers._ProbeRun, []
    order = run.order

    def fails(self):
        count.append(1)
        if len(count) > calls:
            raise KeyboardInterrupt
        return order(self)

    with monkeypatch.context() as patch:
        patch.setattr(run, "order", fails)
        with pytest.raises(KeyboardInterrupt):
            train_from_file(songs, out=tmp_path / "cut")
    assert not (tmp_path / "cut" / "model.safetensors").exists(), "a run that is cut short makes no model"
    count.clear()
    monkeypatch.setattr(run, "order", lambda self: count.append(1) or order(self))
    train_from_file(songs, out=tmp_path / "cut")
    assert len(count) == 14 - {3: 2, 4: 4, 10: 7 + 2}[calls]
    assert weights(tmp_path / "cut") == weights(tmp_path / "whole")
    count.clear()
    train_from_file(songs, out=tmp_path / "cut")
    assert not count, "a finished run returns at once"
    train_from_file(songs, out=tmp_path / "cut", resume=False)
    assert weights(tmp_path / "cut") == weights(tmp_path / "whole")


def test_more_epochs_go_on_from_a_finished_run(songs, tmp_path):
    train_from_file(songs, out=tmp_path / "two")
    train_from_file(songs, out=tmp_path / "two", changes=["training.epochs=9"])
    train_from_file(songs, out=tmp_path / "one", changes=["training.epochs=9"])
    assert weights(tmp_path / "two") == weights(tmp_path / "one")
    with pytest.raises(CorruptRecordsError, match="later epoch"):
        train_from_file(songs, out=tmp_path / "two")


def test_checkpoints_of_something_else_are_refused(songs, tmp_path):
    train_from_file(songs, out=tmp_path / "out")
    for change in ("training.seed=1", "data.min_count=2", "data.max_songs=5", "training.learning_rate=1e-5"):
        with pytest.raises(CorruptRecordsError, match=r"delete .*professional\.safetensors"):
            train_from_file(songs, out=tmp_path / "out", changes=[change])
    checkpoint = tmp_path / "out" / "run" / "professional.safetensors"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-9])
    with pytest.raises(CorruptRecordsError, match="damaged"):
        train_from_file(songs, out=tmp_path / "out")


def test_training_leaves_random_state_and_threads_alone(songs, tmp_path):
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    train_from_file(songs, out=tmp_path / "out", changes=["training.threads=2", "training.epochs=1"])
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads


def test_scores_of_a_test_split(songs, tmp_path):
    changes = ["data.test=any", "training.epochs=60", "training.learning_rate=0.03", "training.checkpoint_every=60"]
    result = train_from_file(songs, out=tmp_path / "out", changes=changes)  # JSON lines are one split
    scores = json.loads((result.folder / SCORES).read_text())
    assert scores["songs"] == 6
    assert set(scores) == {"songs", "0.5", "0.6", "0.7", "0.8", "0.9"}
    assert set(scores["0.5"]["amateur"]) == set(SCORED["amateur"])
    assert scores["0.5"]["amateur"]["song_purpose"]["f1"] > 0.9, "learnt by heart"


def test_a_bad_test_split_is_found_before_training(songs, tmp_path):
    table = tmp_path / "split"
    rows = {"train": [song_row(index) for index in range(4)], "test": [song_row(4), {**song_row(5), "amateur": None}]}
    table.mkdir()
    for split, found in rows.items():
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in found)
        (table / f"{split}.jsonl").write_text(text)
    changes = [f"data.dataset={table}", "data.train=train"]
    with pytest.raises(NoDataError, match="tests"):
        train_from_file(songs, out=tmp_path / "out", changes=[*changes, "data.test=tests"])
    with pytest.raises(InvalidTagsError, match="s_5"):
        train_from_file(songs, out=tmp_path / "out", changes=[*changes, "data.test=test"])
    assert not (tmp_path / "out").exists()


def test_foreign_code_is_allowed_on_the_command_line_only(songs, tmp_path, monkeypatch, capsys):
    from music_evals.cli import main

    given = []
    real = taggers.load_music_encoder
    monkeypatch.setattr(
        taggers,
        "load_music_encoder",
        lambda *settings, **options: given.append(options["trust_remote_code"]) or real(*settings, **options),
    )
    command = ["train", str(songs), "--out", str(tmp_path / "out"), "--set", "training.epochs=1"]
    assert main(command) == 0
    assert main([*command, "--trust-remote-code"]) == 0
    assert given == [False, True]
    recipe = json.loads(songs.read_text())
    recipe["data"]["trust_remote_code"] = True
    songs.write_text(json.dumps(recipe))
    assert main(command) == 2
    assert "unknown data setting 'trust_remote_code'" in capsys.readouterr().err
    with pytest.raises(InvalidInputError, match="for the encoder of a tagger"):
        train_from_file(SHIPPED.parents[1] / "anticipation_rnn" / "train.yaml", trust_remote_code=True)


def test_songs_are_looked_for_as_describe_does(songs, tmp_path):
    """In sub-folders, and by ids; what belongs to no song does not matter."""
    (tmp_path / "songs" / "deeper").mkdir()
    (tmp_path / "songs" / "s_2.safetensors").rename(tmp_path / "songs" / "deeper" / "s_2.safetensors")
    for name in ("other.safetensors", "deeper/other.safetensors", ".s_1.safetensors"):
        (tmp_path / "songs" / name).write_bytes(b"x")
    changes = ["training.epochs=1"]
    assert train_from_file(songs, out=tmp_path / "out", changes=changes).songs == 6
    (tmp_path / "songs" / "deeper" / "s_1.safetensors").write_bytes(b"x")
    with pytest.raises(PairCountError, match="s_1"):
        train_from_file(songs, out=tmp_path / "out", changes=changes)


def test_lines_end_where_json_says(songs, tmp_path):
    rows = [{**song_row(index), "title": "a\u2028b\x85c\x1ed"} for index in range(6)]
    text = "\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    (tmp_path / "rows.jsonl").write_bytes(text.encode())
    assert train_from_file(songs, out=tmp_path / "out", changes=["training.epochs=1"]).songs == 6


def test_an_empty_tag_is_a_tag_as_in_the_scores(songs):
    from music_evals.pipelines.descriptions import description_of_row

    row = song_row(1)
    row["amateur"]["dimensions"]["song_purpose"]["tags"] = ["", "KTV"]
    assert row_tags(row, "amateur")["song_purpose"] == description_of_row(row)["amateur"]["song_purpose"]
    assert "" in TagVocabulary.build({"amateur": [row_tags(row, "amateur")]}).tags["amateur"]["song_purpose"]


def test_songs_without_recording(songs, tmp_path):
    (tmp_path / "songs" / "s_3.safetensors").unlink()
    with pytest.raises(NoDataError, match="'s_3'"):
        train_from_file(songs, out=tmp_path / "out")
    assert train_from_file(songs, out=tmp_path / "out", changes=["data.missing=skip"]).songs == 5


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (["data.audio=nowhere"], NoDataError, "no folder nowhere"),
        (["data.audio=null"], InvalidInputError, "audio or audio_column"),
        (["data.encoder.name=mert95"], UnknownNameError, "mert-95m"),
        (["data.encoder=encodec", "data.encoder.pooling=max"], InvalidInputError, "no section of the recipe"),
        (["data.dataset=nothing_here"], UnknownNameError, "unknown dataset 'nothing_here'"),
        (["data.grops=[amateur]"], UnknownNameError, "did you mean groups"),
        (["data.groups=[amateurs]"], UnknownNameError, "did you mean amateur"),
        (["data.missing=ignore"], UnknownNameError, "error, skip"),
        (["data.trust_remote_code=true"], UnknownNameError, "unknown data setting 'trust_remote_code'"),
        (["model.input_size=3"], InvalidInputError, "follows from"),
        (["model.threshold=2"], InvalidInputError, "threshold"),
        (["training.epochs=0"], InvalidInputError, "epochs must be at least 1"),
        (["training.epochs"], InvalidInputError, "section.setting=value"),
        (["epochs=3"], InvalidInputError, "section.setting=value"),
        (["data.groups=["], InvalidInputError, "not YAML"),
        (["model_type.x=3"], InvalidInputError, "no section"),
    ],
)
def test_wrong_settings_are_named(songs, changes, error, message):
    with pytest.raises(error, match=message):
        train_from_file(songs, out=songs.parent / "out", changes=changes)


def test_a_dataset_of_the_clone_is_found_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoDataError):
        load_songs(TaggerData("caimd", str(tmp_path), config="demo"), "test", tmp_path)


def test_a_device_that_is_not_there_is_said_at_once(songs, tmp_path):
    with pytest.raises(InvalidInputError, match="'abacus'"):
        train_from_file(songs, out=tmp_path / "out", device="abacus")


def test_rows_that_are_wrong_are_named(songs, tmp_path):
    write_rows(tmp_path / "rows.jsonl", [1, 1])
    with pytest.raises(InvalidInputError, match="s_1"):
        train_from_file(songs, out=tmp_path / "out")
    (tmp_path / "rows.jsonl").write_text("{")
    with pytest.raises(UnreadableFileError, match="JSON lines"):
        train_from_file(songs, out=tmp_path / "out")


def test_changes_of_a_recipe(songs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    changes = ["data.audio=songs", "training.learning_rate=1e-5", "data.encoder.size=3", "data.groups=[amateur]"]
    values = read_sections(songs, [*changes, "data.config=v2", "extra.deep.er=true"])
    assert values["data"]["audio"] == str(tmp_path / "songs"), "a path from the command line is meant from where one is"
    assert values["training"]["learning_rate"] == 1e-5
    assert values["data"]["encoder"] == {"name": "jukebox", "size": 3}
    assert (values["data"]["groups"], values["data"]["config"]) == (["amateur"], "v2")
    assert values["extra"] == {"deep": {"er": True}}


def test_the_shipped_recipe_is_the_published_one():
    with pytest.raises(InvalidInputError, match=r"setting data\.dataset"):
        build_recipe(read_sections(SHIPPED))
    recipe = build_recipe(read_sections(SHIPPED, ["data.dataset=caimd", "data.audio=audio"]))
    assert recipe.training == TaggerTraining(batch_size=1024, epochs=20000, checkpoint_every=20, learning_rate=1e-5)
    assert recipe.data == TaggerData("caimd", "audio")
    config = json.loads((SHIPPED.parent / "config.json").read_text())
    assert MusicTaggerConfig(**config) == MusicTaggerConfig(**recipe.model)


# --- saving and loading


def tiny(tmp_path) -> tuple[MusicTagger, np.ndarray]:
    torch.manual_seed(0)
    config = MusicTaggerConfig(
        input_size=4, hidden_size=8, groups=("amateur",), encoder={"name": "jukebox", "size": 4}, threshold=0.6
    )
    tagger = MusicTagger(config, vocabulary(song_purpose=("助眠", "KTV", "c"), perception_of_tempo=("快",))).eval()
    return tagger, np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)


@pytest.mark.slow
def test_save_and_load_in_a_fresh_process(tmp_path):
    tagger, features = tiny(tmp_path)
    tagger.save_pretrained(tmp_path / "saved")
    np.save(tmp_path / "features.npy", features)
    code = (
        "import json, sys, numpy as np\nfrom music_evals.models.music_tagger import MusicTagger\n"
        "tagger = MusicTagger.from_pretrained(sys.argv[1] + '/saved')\n"
        "print(json.dumps(tagger.tag_features(np.load(sys.argv[1] + '/features.npy'))))"
    )
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == tagger.tag_features(features)


def test_thresholds(tmp_path):
    tagger, features = tiny(tmp_path)
    tagger.save_pretrained(tmp_path / "saved")
    assert tagger.name == "music_tagger:jukebox"
    assert MusicTagger.from_pretrained(tmp_path / "saved").tag_features(features) == tagger.tag_features(features)
    other = MusicTagger.from_pretrained(tmp_path / "saved", threshold=0.1)
    assert other.name == "music_tagger:jukebox:0.1"
    assert tagger.describe() == {"threshold": 0.6, "encoder": {"name": "jukebox", "size": 4, "version": 1}}
    assert other.describe()["threshold"] == 0.1
    assert tagger.suffixes == {".safetensors"}
    json.dumps(tagger.describe())
    assert all(len(tags["amateur"]["song_purpose"]) == 3 for tags in other.tag_features(features))
    with pytest.raises(InvalidInputError, match="threshold"):
        MusicTagger.from_pretrained(tmp_path / "saved", threshold=-1)
    with pytest.raises(InvalidInputError, match="'high'"):
        MusicTagger.from_pretrained(tmp_path / "saved", threshold="high")


def test_probabilities_are_sigmoids_of_the_logits(tmp_path):
    tagger, features = tiny(tmp_path)
    with torch.no_grad():
        logits = tagger(torch.from_numpy(features))["amateur"].numpy()
    np.testing.assert_allclose(tagger.probabilities(features)["amateur"], 1 / (1 + np.exp(-logits)), atol=1e-6)
    with pytest.raises(InvalidInputError, match=r"\(n, 4\)"):
        tagger.probabilities(features[:, :3])


def test_a_config_cannot_allow_foreign_code(tmp_path):
    tagger, _ = tiny(tmp_path)
    tagger.save_pretrained(tmp_path / "saved")
    path = tmp_path / "saved" / "config.json"
    stranger = {"trust_remote_code": True, "vocabulary": {}, "device": "nowhere", "threshold": 0.6}
    path.write_text(json.dumps({**json.loads(path.read_text()), **stranger}))
    loaded = MusicTagger.from_pretrained(tmp_path / "saved")
    assert loaded._run == {"trust_remote_code": False, "cache": True, "device": None}


def test_what_is_no_trained_tagger(tmp_path):
    with pytest.raises(NoDataError):
        MusicTagger.from_pretrained(SHIPPED.parent)
    with pytest.raises(UnknownNameError):
        MusicTagger.from_pretrained("./models/nowhere")
    tagger, _ = tiny(tmp_path)
    tagger.save_pretrained(tmp_path / "saved")
    whole = (tmp_path / "saved" / "model.safetensors").read_bytes()
    (tmp_path / "saved" / "model.safetensors").write_bytes(whole[:-5])
    with pytest.raises(UnreadableFileError, match="damaged"):
        MusicTagger.from_pretrained(tmp_path / "saved")
    (tmp_path / "saved" / "model.safetensors").write_bytes(whole)
    (tmp_path / "saved" / "vocabulary.json").write_text(vocabulary(song_purpose=("one",)).to_json())
    with pytest.raises(UnreadableFileError, match="do not fit"):
        MusicTagger.from_pretrained(tmp_path / "saved")
    (tmp_path / "saved" / "vocabulary.json").unlink()
    with pytest.raises(NoDataError, match=r"vocabulary\.json"):
        MusicTagger.from_pretrained(tmp_path / "saved")


def test_an_encoder_of_another_size_is_refused(tmp_path):
    tagger, _ = tiny(tmp_path)
    wrong = load_music_encoder(EncoderSettings("jukebox", size=5))
    with pytest.raises(InvalidInputError, match="gives 5 numbers, the tagger takes 4"):
        MusicTagger(tagger.config, tagger.vocabulary, extractor=wrong)
    with pytest.raises(InvalidInputError, match="the vocabulary for amateur"):
        MusicTagger(MusicTaggerConfig(input_size=4, hidden_size=8), tagger.vocabulary)


# --- from sounds to tags


def write_sounds(folder: Path) -> None:
    rng, rate = np.random.default_rng(0), 8000
    seconds = np.arange(rate) / rate
    sounds = [np.sin(2 * np.pi * pitch * seconds) for pitch in (110, 330, 990)]
    sounds += [rng.standard_normal(rate), np.cumsum(rng.standard_normal(rate)) / 50, np.sign(sounds[0])]
    folder.mkdir()
    for index, sound in enumerate(sounds):
        soundfile.write(folder / f"s_{index}.wav", 0.3 * sound / np.abs(sound).max(), rate)


def write_hubert(folder: Path) -> Path:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.HubertConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, conv_dim=(8,) * 7,
        num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2,
    )  # fmt: skip
    transformers.HubertModel(config).save_pretrained(folder)
    transformers.Wav2Vec2FeatureExtractor(sampling_rate=24000).save_pretrained(folder)
    return folder


def write_dataset(folder: Path) -> None:
    import datasets

    for split, indices in (("train", range(6)), ("test", range(4, 6))):
        rows = datasets.Dataset.from_list([song_row(index) for index in indices])
        rows.to_parquet(folder / "data" / f"{split}-00000-of-00001.parquet")


@pytest.mark.slow
def test_sounds_are_learnt_by_heart(tmp_path, monkeypatch, capsys):
    """The command of the card, with a tiny random encoder: what was learnt comes back from the sounds."""
    from music_evals.cli import main

    write_sounds(tmp_path / "audio")
    write_dataset(tmp_path / "caimd_tiny")
    write_hubert(tmp_path / "hubert")
    monkeypatch.chdir(tmp_path)
    changes = [
        "data.dataset=caimd_tiny", "data.audio=audio", "data.test=test", "data.encoder.model=hubert",
        "data.encoder.window_seconds=1", "model.hidden_size=16", "training.learning_rate=0.05", "training.epochs=100",
        "training.checkpoint_every=40",
    ]  # fmt: skip
    options = [word for change in changes for word in ("--set", change)]
    command = ["train", str(SHIPPED), *options, "--out", "runs/probe", "--device", "cpu", "--json"]
    assert main(command) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["folder"], said["songs"]) == ("runs/probe", 6)
    tagger = MusicTagger.from_pretrained("runs/probe", device="cpu")
    assert tagger.name == "music_tagger:mert-95m[hubert]"
    assert tagger.describe()["encoder"]["identity"].startswith("sha256-")
    assert ".wav" in tagger.suffixes
    for index in range(6):
        found = tagger.tag(Path("audio") / f"s_{index}.wav")
        for group in tagger.groups:
            assert found[group].keys() == set(SCORED[group])
            for name, tags in found[group].items():
                assert set(tags) == {f"{name}-{index}", "共有" if index % 2 else "常见"}, (index, group, name)


@pytest.mark.slow
def test_songs_from_a_column_of_audio(tmp_path, songs):
    import datasets

    write_sounds(tmp_path / "audio")
    write_hubert(tmp_path / "hubert")
    paths = [*(str(tmp_path / "audio" / f"s_{index}.wav") for index in range(4)), None]
    rows = [{**song_row(index), "audio": path} for index, path in enumerate(paths)]
    table = datasets.Dataset.from_list(rows).cast_column("audio", datasets.Audio())
    table.to_parquet(tmp_path / "with_audio" / "train-00000-of-00001.parquet")
    values = read_sections(songs, ["data.dataset=with_audio", "data.audio=null", "data.audio_column=audio"])
    values["data"]["encoder"] = {"name": "mert-95m", "model": str(tmp_path / "hubert"), "window_seconds": 1}
    with pytest.raises(NoDataError, match="'s_4'"):
        train_tagger(values, tmp_path, tmp_path / "column", device="cpu")
    values["data"]["missing"] = "skip"
    by_column = train_tagger(values, tmp_path, tmp_path / "column", device="cpu")
    assert by_column.songs == 4
    (tmp_path / "audio" / "s_4.wav").unlink()
    values["data"] |= {"audio": "audio", "audio_column": None}
    train_tagger(values, tmp_path, tmp_path / "files", device="cpu")
    assert weights(tmp_path / "files") == weights(tmp_path / "column")
