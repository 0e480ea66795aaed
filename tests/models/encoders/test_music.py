"""Encoders: tiny random networks of the real classes, checked against transformers called by hand."""

import json
import math
import shutil
import types
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from music_evals.errors import (
    InvalidAudioError,
    InvalidInputError,
    ModelUnavailableError,
    NoDataError,
    PaddedRecordingWarning,
    UnknownNameError,
    UnreadableFileError,
    UnsupportedTypeError,
)
from music_evals.models.encoders import networks as encoder_networks
from music_evals.models.encoders.music import ENCODERS, EncoderSettings, load_music_encoder
from music_evals.models.encoders.precomputed import read_features, write_features

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.usefixtures("one_thread")

RATE = 24000
HUBERT = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "conv_dim": (8,) * 7,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
}
EXTRACTOR = {"feature_size": 1, "padding_value": 0.0, "do_normalize": True, "return_attention_mask": True}


def save(folder: Path, model, rate: int | None = None) -> Path:
    model.save_pretrained(folder)
    if rate is not None:
        transformers.Wav2Vec2FeatureExtractor(sampling_rate=rate, **EXTRACTOR).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Path]:
    torch.manual_seed(0)
    root = tmp_path_factory.mktemp("models")
    encodec = transformers.EncodecConfig(
        target_bandwidths=[3.0, 12.0], sampling_rate=4800, audio_channels=2, normalize=True, chunk_length_s=1.0,
        overlap=0.01, num_filters=4, hidden_size=8, codebook_dim=8, codebook_size=16, upsampling_ratios=[4, 4, 2],
        num_lstm_layers=1, norm_type="time_group_norm", use_causal_conv=False,
    )  # fmt: skip
    codec = transformers.EncodecModel(encodec)
    for layer in codec.quantizer.layers:  # an untrained codebook is all zeros
        layer.codebook.embed.copy_(torch.randn_like(layer.codebook.embed))
    data2vec = transformers.Data2VecAudioConfig(**{**HUBERT, "num_conv_pos_embeddings": 2, "conv_pos_kernel_size": 5})
    return {
        "mert": save(root / "mert", transformers.HubertModel(transformers.HubertConfig(**HUBERT)), RATE),
        "music2vec": save(root / "music2vec", transformers.Data2VecAudioModel(data2vec), 16000),
        "encodec": save(root / "encodec", codec),
    }


def sound(seconds: float, rate: int = RATE, channels: int = 1, seed: int = 0) -> np.ndarray:
    """Noise over a tone, shape (n, channels)."""
    rng = np.random.default_rng(seed)
    n = int(seconds * rate)
    tone = 0.2 * np.sin(2 * np.pi * (200 + 100 * seed) * np.arange(n) / rate)
    return tone[:, None] + 0.02 * rng.standard_normal((n, channels))


@pytest.fixture
def song(tmp_path) -> Path:
    path = tmp_path / "song.wav"
    soundfile.write(path, sound(2.6), RATE, subtype="FLOAT")
    return path


def mert(models, tmp_path, **options):
    run = {name: options.pop(name) for name in ("cache", "batch_size", "trust_remote_code") if name in options}
    settings = EncoderSettings("mert-95m", model=str(models["mert"]), **{"window_seconds": 1.0, **options})
    return load_music_encoder(settings, **{"device": "cpu", "cache": tmp_path / "cache", **run})


# --- MERT ------------------------------------------------------------------------------------------------------------


def published_mert(folder: Path, mono: np.ndarray, window_seconds: int, feature_rate: int = 75) -> np.ndarray:
    """Window by window as `extract_mert_features.py` describes itself, written down anew."""
    model = transformers.HubertModel.from_pretrained(folder).eval()
    extractor = transformers.Wav2Vec2FeatureExtractor.from_pretrained(folder)
    size, kept = window_seconds * RATE, []
    for start in range(0, len(mono), size):
        part = mono[start : start + size + 320]
        part = np.concatenate([part, np.zeros(size + 320 - len(part), np.float32)])
        inputs = extractor(part, sampling_rate=RATE, return_tensors="pt", return_attention_mask=True)
        with torch.no_grad():
            hidden = model(**inputs, output_hidden_states=True).hidden_states[-1][0]
        last = start + size >= len(mono)
        kept.append(hidden[: (len(mono) - start) * feature_rate // RATE if last else window_seconds * feature_rate])
    return torch.cat(kept).mean(0).numpy()


@pytest.mark.parametrize("seconds", [0.7, 1.0, 2.6])
def test_mert_is_the_published_windowing(models, tmp_path, seconds):
    mono = sound(seconds)[:, 0].astype(np.float32)
    found = mert(models, tmp_path, loudness=None).features({"array": mono, "sampling_rate": RATE})
    np.testing.assert_allclose(found, published_mert(models["mert"], mono, 1), atol=1e-5)
    assert found.dtype == np.float32
    assert found.shape == (16,)


def test_batches_change_nothing(models, tmp_path, song):
    one = mert(models, tmp_path, cache=False, batch_size=1).features(song)
    many = mert(models, tmp_path, cache=False, batch_size=3).features(song)
    np.testing.assert_allclose(one, many, atol=1e-5)


def test_windows_are_sixty_seconds_by_default(models):
    encoder = load_music_encoder(EncoderSettings("mert-95m", model=str(models["mert"])), device="cpu", cache=False)
    assert (encoder.network.window, encoder.network.stride, encoder.network.layer) == (60 * RATE, 320, 2)
    assert RATE / encoder.network.stride == 75


def test_layers(models, tmp_path, song):
    vectors = [mert(models, tmp_path, layer=layer).features(song) for layer in (0, 1, 2, None)]
    np.testing.assert_array_equal(vectors[2], vectors[3])
    assert not np.allclose(vectors[0], vectors[1])
    with pytest.raises(InvalidInputError, match=r"0\.\.2"):
        mert(models, tmp_path, layer=3)


def as_mert(source: Path, folder: Path, **changes) -> Path:
    """Write a model as the repository of MERT holds it: a configuration of its own, pickled weights, old names."""
    folder.mkdir()
    shutil.copy(source / "preprocessor_config.json", folder)
    values = json.loads((source / "config.json").read_text())
    del values["conv_pos_batch_norm"]
    own = {"model_type": "mert_model", "architectures": ["MERTModel"], "feature_extractor_cqt": False}
    own |= {"deepnorm": False, "attention_relax": -1.0, "auto_map": {"AutoModel": "modeling_MERT.MERTModel"}}
    (folder / "config.json").write_text(json.dumps({**values, **own, **changes}))
    state = transformers.HubertModel.from_pretrained(source).state_dict()
    old = "encoder.pos_conv_embed.conv.parametrizations.weight.original"
    names = {f"{old}0": "encoder.pos_conv_embed.conv.weight_g", f"{old}1": "encoder.pos_conv_embed.conv.weight_v"}
    torch.save({names.get(name, name): value for name, value in state.items()}, folder / "pytorch_model.bin")
    return folder


@pytest.mark.parametrize("relax", [-1.0, 32.0])
def test_mert_without_its_own_code(models, tmp_path, song, relax):
    folder = as_mert(models["mert"], tmp_path / "remote", attention_relax=relax)
    plain = mert(models, tmp_path, cache=False).features(song)
    remote = mert({"mert": folder}, tmp_path, cache=False).features(song)
    np.testing.assert_array_equal(plain, remote)


def test_relaxed_attention_is_attention():
    """MERT's own code takes the largest score of a row away before the softmax, on a smaller scale."""
    scores = torch.randn(2, 5, 7, generator=torch.Generator().manual_seed(0)) * 20
    relaxed = (scores / 32 - (scores / 32).amax(dim=-1, keepdim=True)) * 32
    assert torch.allclose(relaxed.softmax(-1), scores.softmax(-1), atol=1e-6)


@pytest.mark.parametrize("extra", [{"feature_extractor_cqt": True}, {"deepnorm": True}])
def test_mert_that_needs_its_own_code_says_so(models, tmp_path, extra):
    folder = as_mert(models["mert"], tmp_path / "remote", **extra)
    with pytest.raises(ModelUnavailableError, match="trust_remote_code=True"):
        mert({"mert": folder}, tmp_path)


def test_weights_that_do_not_fit_are_no_model(models, tmp_path):
    folder = as_mert(models["mert"], tmp_path / "remote")
    state = torch.load(folder / "pytorch_model.bin")
    del state["encoder.layers.0.final_layer_norm.weight"]
    torch.save(state, folder / "pytorch_model.bin")
    with pytest.raises(ModelUnavailableError, match=r"final_layer_norm\.weight"):
        mert({"mert": folder}, tmp_path)


def test_trusted_code_runs(models, tmp_path, song, monkeypatch):
    """The path over a repository's own code, with code of ours."""
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder = as_mert(models["mert"], tmp_path / "remote", auto_map={
        "AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel",
    })  # fmt: skip
    (folder / "own.py").write_text(
        "from transformers import HubertConfig, HubertModel\n"
        "class OwnConfig(HubertConfig):\n    model_type = 'mert_model'\n"
        "class OwnModel(HubertModel):\n    config_class = OwnConfig\n"
    )
    found = mert({"mert": folder}, tmp_path, cache=False, trust_remote_code=True)
    assert type(found.network.model).__name__ == "OwnModel"
    np.testing.assert_array_equal(found.features(song), mert(models, tmp_path, cache=False).features(song))


def test_code_that_does_not_run_here_is_named(models, tmp_path, monkeypatch):
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    auto_map = {"AutoConfig": "broken.OwnConfig", "AutoModel": "broken.OwnModel"}
    folder = as_mert(models["mert"], tmp_path / "remote", auto_map=auto_map)
    (folder / "broken.py").write_text("from transformers import NoSuchClass as OwnConfig\nOwnModel = OwnConfig\n")
    with pytest.raises(ModelUnavailableError, match="does not run with transformers"):
        mert({"mert": folder}, tmp_path, trust_remote_code=True)


@pytest.mark.parametrize("name", ["mert", "remote", "encodec"])
def test_weights_that_were_cut_are_named(models, tmp_path, name):
    source = as_mert(models["mert"], tmp_path / "whole") if name == "remote" else models[name]
    folder = tmp_path / "cut"
    shutil.copytree(source, folder)
    (path,) = [*folder.glob("*.safetensors"), *folder.glob("*.bin")]
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(ModelUnavailableError, match="cannot be loaded"):
        load_music_encoder(EncoderSettings("encodec" if name == "encodec" else "mert-95m", model=str(folder)))


# --- music2vec -------------------------------------------------------------------------------------------------------


def music2vec(models, **options):
    settings = EncoderSettings("music2vec", model=str(models["music2vec"]), **options)
    return load_music_encoder(settings, device="cpu", cache=False)


def test_music2vec_reads_everything_in_one_pass(models):
    mono = sound(1.3, 16000)[:, 0].astype(np.float32)
    model = transformers.Data2VecAudioModel.from_pretrained(models["music2vec"]).eval()
    inputs = transformers.Wav2Vec2FeatureExtractor(sampling_rate=16000, **EXTRACTOR)(
        mono, sampling_rate=16000, return_tensors="pt"
    )
    with torch.no_grad():
        expected = model(**inputs, output_hidden_states=True).hidden_states[2][0].mean(0).numpy()
    found = music2vec(models, loudness=None).features({"array": mono, "sampling_rate": 16000})
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_music2vec_hears_480_seconds(models, monkeypatch):
    encoder = music2vec(models, loudness=None)
    heard = []
    monkeypatch.setattr(encoder.network, "pool", lambda samples, _: heard.append(samples) or np.zeros(16, np.float32))
    encoder.features({"array": np.ones(481 * 4000, np.float32), "sampling_rate": 4000})
    assert heard[0].shape == (1, 480 * 16000)


# --- EnCodec ---------------------------------------------------------------------------------------------------------


def encodec(models, **options):
    batch_size = options.pop("batch_size", 2)
    settings = EncoderSettings("encodec", model=str(models["encodec"]), loudness=None, **options)
    return load_music_encoder(settings, device="cpu", cache=False, batch_size=batch_size)


def codes_by_hand(folder: Path, stereo: np.ndarray) -> tuple[object, torch.Tensor]:
    """Codes (segments, 1, codebooks, frames) of the padded whole, by `EncodecModel.encode` and its extractor."""
    model = transformers.EncodecModel.from_pretrained(folder).eval()
    extractor = transformers.EncodecFeatureExtractor(
        feature_size=2, sampling_rate=4800, chunk_length_s=1.0, overlap=0.01
    )
    inputs = extractor(stereo, sampling_rate=4800, return_tensors="pt", padding=True)
    with torch.no_grad():
        codes = model.encode(inputs["input_values"], inputs["padding_mask"][:, None], bandwidth=12.0).audio_codes
    return model, codes[: math.ceil(stereo.shape[1] / model.config.chunk_stride)]  # later transformers add a rest


def test_encodec_decodes_properly(models):
    stereo = sound(2.5, 4800, 2).T.astype(np.float32)
    model, codes = codes_by_hand(models["encodec"], stereo)
    latents = []
    with torch.no_grad():
        for segment in codes:  # (1, codebooks, frames)
            books = [layer.codebook.embed for layer in model.quantizer.layers]
            latents.append(sum(book[row] for book, row in zip(books, segment[0], strict=False)))  # (frames, size)
    rest = stereo.shape[1] - (len(codes) - 1) * model.config.chunk_stride
    latents[-1] = latents[-1][: math.ceil(rest / 32)]
    found = encodec(models).features({"array": stereo, "sampling_rate": 4800})
    np.testing.assert_allclose(found, torch.cat(latents).mean(0), atol=1e-5)
    assert found.shape == (8,)


@pytest.mark.slow
def test_encodec_with_the_published_indexing(models):
    """Verbal description: the index of codebook q at step t is looked up in codebook 0; mean over segments and q."""
    stereo = sound(2.5, 4800, 2).T.astype(np.float32)
    model, codes = codes_by_hand(models["encodec"], stereo)
    first = model.quantizer.layers[0].codebook.embed.numpy()
    n_segments, _, n_books, n_steps = codes.shape
    expected = np.zeros((8, n_steps))
    for segment in range(n_segments):
        for book in range(n_books):
            for step in range(n_steps):
                expected[:, step] += first[codes[segment, 0, book, step]] / (n_segments * n_books)
    encoder = encodec(models, pooling="muchin")
    found = encoder.features({"array": stereo, "sampling_rate": 4800})
    assert found.shape == (encoder.size,) == (8 * 150,)
    np.testing.assert_allclose(found, expected.ravel(), atol=1e-5)
    one = encodec(models, pooling="muchin", batch_size=1).features({"array": stereo, "sampling_rate": 4800})
    np.testing.assert_allclose(found, one, atol=1e-6)


def test_encodec_sizes_of_the_published_model():
    config = transformers.EncodecConfig(
        audio_channels=2, sampling_rate=48000, normalize=True, chunk_length_s=1.0, overlap=0.01,
        target_bandwidths=[3.0, 6.0, 12.0, 24.0],
    )  # fmt: skip
    with torch.device("meta"):
        model = transformers.EncodecModel(config)
    from music_evals.models.encoders.networks import Encodec

    assert Encodec(model, bandwidth=12.0, pooling="muchin").size == 19200
    assert Encodec(model, bandwidth=12.0, pooling="mean").size == 128 == ENCODERS["encodec"].size
    assert model.quantizer.get_num_quantizers_for_bandwidth(12.0) == 8


def test_encodec_doubles_mono_and_may_leave_the_rate_alone(models):
    mono = sound(1.5, 9600)[:, 0].astype(np.float32)
    array = {"array": mono, "sampling_rate": 9600}
    both = {"array": np.stack([mono, mono]), "sampling_rate": 9600}
    np.testing.assert_array_equal(encodec(models).features(array), encodec(models).features(both))
    left_alone = encodec(models, resample=False).features(array)
    np.testing.assert_array_equal(left_alone, encodec(models).features({"array": mono, "sampling_rate": 4800}))
    assert not np.allclose(left_alone, encodec(models).features(array))


def test_encodec_refuses(models):
    with pytest.raises(InvalidInputError, match="bandwidth"):
        encodec(models, bandwidth=5.0)
    with pytest.raises(InvalidAudioError, match="3 channels"):
        encodec(models).features({"array": sound(1, 4800, 3).T, "sampling_rate": 4800})


# --- recordings ------------------------------------------------------------------------------------------------------


def test_loudness_is_measured_in_the_recording(models, tmp_path):
    """A gain in front of the loudness normalisation changes nothing; MERT's own normalisation is off here."""
    folder = tmp_path / "plain"
    shutil.copytree(models["mert"], folder)
    transformers.Wav2Vec2FeatureExtractor(sampling_rate=RATE, **{**EXTRACTOR, "do_normalize": False}).save_pretrained(
        folder
    )
    loud, quiet = sound(1.5, channels=2), 0.1 * sound(1.5, channels=2)
    encoder = mert({"mert": folder}, tmp_path, cache=False)
    np.testing.assert_allclose(
        encoder.features({"array": loud, "sampling_rate": RATE}),
        encoder.features({"array": quiet, "sampling_rate": RATE}),
        atol=1e-5,
    )


def test_prepared_samples_have_the_loudness_that_was_asked_for():
    import pyloudnorm

    from music_evals.models.encoders.audio import prepare

    stereo = sound(3, 44100, 2)
    out = prepare(
        {"array": stereo, "sampling_rate": 44100}, rate=44100, channels=2, loudness=-12.0, resample=True,
        max_seconds=None,
    )  # fmt: skip
    assert pyloudnorm.Meter(44100).integrated_loudness(out.T) == pytest.approx(-12, abs=0.01)


@pytest.mark.parametrize(
    ("array", "message"),
    [(np.zeros(RATE), "silent"), (sound(0.3)[:, 0], "0.4 s"), (sound(1, channels=6).T, "5 channels")],
)
def test_recordings_without_a_loudness(models, tmp_path, array, message):
    with pytest.raises(InvalidAudioError, match=message):
        mert(models, tmp_path).features({"array": array, "sampling_rate": RATE})


def test_less_than_a_frame(models, tmp_path):
    with pytest.raises(InvalidAudioError, match="frame"):
        mert(models, tmp_path, loudness=None).features({"array": np.ones(100), "sampling_rate": RATE})


def test_a_file_its_bytes_and_a_row_are_one_recording(models, tmp_path, song):
    encoder = mert(models, tmp_path)
    expected = encoder.features(song)
    content = song.read_bytes()
    for source in (str(song), content, {"bytes": content, "path": "song.wav"}, {"path": str(song), "bytes": None}):
        np.testing.assert_array_equal(encoder.features(source), expected)
    assert len(list((tmp_path / "cache").rglob("*.entry"))) == 1


def test_what_is_no_recording(models, tmp_path):
    encoder = mert(models, tmp_path)
    with pytest.raises(UnsupportedTypeError, match="decode=False"):
        encoder.features(3)
    with pytest.raises(NoDataError):
        encoder.features(tmp_path / "none.wav")
    with pytest.raises(UnreadableFileError, match=r"song\.wav"):
        encoder.features({"bytes": b"RIFF", "path": "song.wav"})


# --- the store -------------------------------------------------------------------------------------------------------


def count(encoder, monkeypatch) -> list:
    calls, pool = [], encoder.network.pool
    monkeypatch.setattr(encoder.network, "pool", lambda *given: calls.append(1) or pool(*given))
    return calls


def test_a_recording_is_encoded_once(models, tmp_path, song, monkeypatch):
    encoder = mert(models, tmp_path)
    calls = count(encoder, monkeypatch)
    first = encoder.features(song)
    np.testing.assert_array_equal(first, encoder.features(song))
    assert len(calls) == 1
    again = mert(models, tmp_path)
    monkeypatch.setattr(again.network, "pool", None)
    np.testing.assert_array_equal(again.features(song), first)


def test_the_store_tells_settings_and_weights_apart(models, tmp_path, song):
    torch.manual_seed(1)
    other = save(tmp_path / "other", transformers.HubertModel(transformers.HubertConfig(**HUBERT)), RATE)
    moved = tmp_path / "moved"
    shutil.copytree(models["mert"], moved)
    for encoder in (
        mert(models, tmp_path),
        mert(models, tmp_path, layer=1),
        mert(models, tmp_path, loudness=None),
        mert(models, tmp_path, window_seconds=2.0),
        mert({"mert": other}, tmp_path),
    ):
        encoder.features(song)
    assert len(list((tmp_path / "cache").rglob("*.entry"))) == 5
    mert({"mert": moved}, tmp_path).features(song)
    assert len(list((tmp_path / "cache").rglob("*.entry"))) == 5, "a folder that moved is the same model"


def test_extraction_goes_on_where_it_was_cut_off(models, tmp_path, monkeypatch):
    songs = []
    for seed in range(4):
        songs.append((f"s{seed}", tmp_path / f"s{seed}.wav"))
        soundfile.write(songs[-1][1], sound(0.8, seed=seed), RATE)
    whole = dict(mert(models, tmp_path, cache=tmp_path / "other").extract(songs))
    first = mert(models, tmp_path).extract(iter(songs))
    next(first), next(first)
    first.close()
    encoder = mert(models, tmp_path)
    calls = count(encoder, monkeypatch)
    found = dict(encoder.extract(songs))
    assert len(calls) == 2
    assert {name: value.tolist() for name, value in found.items()} == {k: v.tolist() for k, v in whole.items()}


def test_an_error_names_the_song(models, tmp_path):
    with pytest.raises(NoDataError, match="s_1"):
        list(mert(models, tmp_path).extract([("s_1", tmp_path / "gone.wav")]))


def flip(content: bytes) -> bytes:
    return content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]


@pytest.mark.parametrize("damage", [lambda c: c[:-4], lambda c: c[:20], lambda _: b"", flip])
def test_a_damaged_feature_is_worked_out_again(models, tmp_path, song, damage, caplog):
    encoder = mert(models, tmp_path)
    expected = encoder.features(song)
    (path,) = (tmp_path / "cache").rglob("*.entry")
    sound = path.read_bytes()
    path.write_bytes(damage(sound))
    np.testing.assert_array_equal(encoder.features(song), expected)
    assert path.name in caplog.text
    assert path.read_bytes() == sound


# --- what a model is identified by -----------------------------------------------------------------------------------

COMMITS = ["0123456789abcdef0123456789abcdef01234567", "89abcdef0123456789abcdef0123456789abcdef"]


@pytest.fixture
def hub_cache(models, tmp_path, monkeypatch):
    """Put a folder into a cache of the Hub, as the newest commit of an id; there is no connection."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)

    def put(name: str, source: Path, commit: str) -> None:
        stored = tmp_path / "hub" / f"models--{name.replace('/', '--')}"
        shutil.copytree(source, stored / "snapshots" / commit, dirs_exist_ok=True)
        (stored / "refs").mkdir(exist_ok=True)
        (stored / "refs" / "main").write_text(commit)

    return put


@pytest.mark.parametrize("name", ["mert-95m", "music2vec", "encodec"])
def test_weights_are_those_of_the_configuration_whatever_happens_in_between(
    models, hub_cache, tmp_path, monkeypatch, name
):
    kind = {"mert-95m": "mert"}.get(name, name)
    hub_cache("lab/ears", models[kind], COMMITS[0])
    broken = tmp_path / "broken"
    broken.mkdir()
    read = encoder_networks.read_configuration

    def push(*given):
        found = read(*given)
        hub_cache("lab/ears", broken, COMMITS[1])  # a newer commit, without any file
        return found

    monkeypatch.setattr(encoder_networks, "read_configuration", push)
    settings = EncoderSettings(name, model="lab/ears")
    assert load_music_encoder(settings, device="cpu", cache=False).about["identity"] == COMMITS[0]


def test_the_feature_extractor_is_part_of_the_identity(models, hub_cache):
    hub_cache("lab/ears", models["mert"], COMMITS[0])
    hub_cache("lab/glasses", models["mert"], COMMITS[1])

    def identity(**options) -> str:
        settings = EncoderSettings("mert-95m", **options)
        return load_music_encoder(settings, device="cpu", cache=False).about["identity"]

    own = identity(model="lab/ears")
    assert own == COMMITS[0]
    assert identity(model="lab/ears", processor="lab/glasses") == f"{COMMITS[0]}+{COMMITS[1]}"
    folder = identity(model=str(models["mert"]))
    assert folder.startswith("sha256-")
    assert identity(model="lab/ears", processor=str(models["mert"])) == f"{own}+{folder}"


def test_what_is_not_here_and_cannot_be_fetched(models, hub_cache):
    hub_cache("lab/ears", models["mert"], COMMITS[0])
    for options in ({"model": "lab/eyes"}, {"model": "lab/ears", "processor": "lab/eyes"}):
        with pytest.raises(ModelUnavailableError, match="hf download lab/eyes"):
            load_music_encoder(EncoderSettings("mert-95m", **options), device="cpu")
    with pytest.raises(InvalidInputError, match="no revisions"):
        load_music_encoder(EncoderSettings("mert-95m", model=str(models["mert"]), revision="main"), device="cpu")


@pytest.mark.parametrize("sha", [COMMITS[0], None])
def test_what_the_hub_says_goes_before_what_is_here(models, hub_cache, monkeypatch, sha):
    """Its newest commit is taken, not the one that a branch stood at when it was fetched; without one, nothing is."""
    hub_cache("lab/ears", models["mert"], COMMITS[0])
    hub_cache("lab/ears", models["mert"], COMMITS[1])
    told = types.SimpleNamespace(sha=sha)
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", lambda *_, **__: told)
    settings = EncoderSettings("mert-95m", model="lab/ears")
    if sha is None:
        with pytest.raises(ModelUnavailableError, match="does not say at which commit"):
            load_music_encoder(settings, device="cpu")
    else:
        assert load_music_encoder(settings, device="cpu", cache=False).about["identity"] == sha


def test_devices_that_are_not_there(models):
    with pytest.raises(InvalidInputError, match="'abacus'"):
        load_music_encoder(EncoderSettings("mert-95m", model=str(models["mert"])), device="abacus")


# --- names and precomputed features ----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["m-a-p/no-such-model", "no/such/folder/at/all", "empty"])
@pytest.mark.parametrize("name", ["mert-95m", "music2vec", "encodec"])
def test_models_that_cannot_be_had(name, model, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    if model == "empty":
        (tmp_path / model).mkdir()
        model = str(tmp_path / model)
    advice = {"m-a-p/no-such-model": "hf download", "no/such/folder/at/all": "give a folder that exists"}
    with pytest.raises(ModelUnavailableError, match=advice.get(model, "get the folder anew")) as caught:
        load_music_encoder(EncoderSettings(name, model=model), device="cpu")
    assert model in str(caught.value)


def test_settings_refuse():
    with pytest.raises(UnknownNameError, match="mert-95m"):
        EncoderSettings("mert-95")
    with pytest.raises(UnknownNameError, match="pooling"):
        EncoderSettings("encodec", pooling="max")
    with pytest.raises(InvalidInputError, match="layer"):
        EncoderSettings("encodec", layer=3)
    with pytest.raises(InvalidInputError, match="pooling"):
        EncoderSettings("mert-95m", pooling="muchin")


def test_a_short_clip_without_padding_is_what_it_is_alone(models, tmp_path):
    """Half a second in windows of one second: with padding the network hears silence, without it the clip alone."""
    clip = {"array": sound(0.4)[:, 0].astype(np.float32), "sampling_rate": RATE}
    with pytest.warns(PaddedRecordingWarning, match=r"0\.4 s is padded to 1 s"):
        padded = mert(models, tmp_path, loudness=None).features(clip)
    alone = mert(models, tmp_path, loudness=None, pad=False).features(clip)
    shorter = mert(models, tmp_path, loudness=None, window_seconds=0.4).features(clip)
    np.testing.assert_allclose(alone, shorter, atol=1e-6)
    assert np.abs(padded - alone).max() > 1e-3


@pytest.mark.parametrize("batch_size", [1, 4])
def test_windows_that_are_full_do_not_depend_on_padding(models, tmp_path, batch_size):
    whole = {"array": sound(2.0)[:, 0].astype(np.float32), "sampling_rate": RATE}
    found = [
        mert(models, tmp_path, loudness=None, pad=pad, batch_size=batch_size, cache=False).features(whole)
        for pad in (True, False)
    ]
    np.testing.assert_array_equal(*found)
    longer = {"array": sound(2.6)[:, 0].astype(np.float32), "sampling_rate": RATE}
    settings = {"loudness": None, "pad": False, "cache": False}
    one, several = (mert(models, tmp_path, batch_size=size, **settings).features(longer) for size in (1, 4))
    np.testing.assert_allclose(one, several, atol=1e-6)


def test_padding_is_the_affair_of_mert():
    with pytest.raises(InvalidInputError, match="'pad'"):
        EncoderSettings("encodec", pad=False)


def test_window_of_no_whole_frames(models, tmp_path):
    with pytest.raises(InvalidInputError, match="frames"):
        mert(models, tmp_path, window_seconds=0.1001)


def test_jukebox_is_read_from_files(tmp_path):
    frames = np.random.default_rng(0).standard_normal((3, 4800)).astype(np.float32)
    write_features(tmp_path, "s_1", frames, sample_rate=44100, layer=53)
    write_features(tmp_path, "s_2", frames[0], sample_rate=44100, layer=53)
    encoder = load_music_encoder("jukebox")
    assert encoder.size == 4800
    found = dict(encoder.extract([("s_1", tmp_path / "s_1.mp3"), ("s_2", tmp_path / "s_2.safetensors")]))
    np.testing.assert_allclose(found["s_1"], frames.mean(0), atol=1e-6)
    np.testing.assert_array_equal(found["s_2"], frames[0])


def test_feature_files_that_are_none(tmp_path):
    from safetensors.numpy import save_file

    with pytest.raises(NoDataError):
        read_features(tmp_path / "none.safetensors")
    path = write_features(tmp_path, "s_1", np.ones(4), sample_rate=44100, layer=53)
    with pytest.raises(UnreadableFileError, match="4800"):
        read_features(path)
    np.testing.assert_array_equal(read_features(path, size=4), np.ones(4))
    with pytest.raises(UnreadableFileError, match="s_1"):
        read_features(path.rename(tmp_path / "s_2.safetensors"), size=4)
    save_file({"features": np.ones(4, np.float32)}, tmp_path / "s_3.safetensors")
    with pytest.raises(UnreadableFileError, match="song_id"):
        read_features(tmp_path / "s_3.safetensors", size=4)
    (tmp_path / "s_4.safetensors").write_bytes(b"cut")
    with pytest.raises(UnreadableFileError, match="s_4"):
        read_features(tmp_path / "s_4.safetensors")
    with pytest.raises(InvalidInputError, match="shape"):
        write_features(tmp_path, "s_5", np.ones((1, 2, 3)), sample_rate=1, layer=1)
