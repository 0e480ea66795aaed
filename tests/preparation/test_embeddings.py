"""Which encoder embeds the songs: by name, by folder, and never another one in silence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from music_evals.benchmark.records import read_records
from music_evals.errors import InvalidInputError, ModelUnavailableError, NoDataError, UnknownNameError
from music_evals.preparation.embeddings import about, read_vector
from music_evals.preparation.task import Settings, run_preparation

RATE = 24000
HUBERT = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "conv_dim": (8,) * 7,
    "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2,
}  # fmt: skip


@pytest.fixture
def song(tmp_path: Path) -> Path:
    folder = tmp_path / "songs"
    folder.mkdir()
    tone = 0.3 * np.sin(2 * np.pi * 220 * np.arange(RATE) / RATE)
    soundfile.write(folder / "a.wav", tone, RATE)
    return folder


def _options(encoder: str | None) -> dict[str, object]:
    return {"encoder": encoder, "device": None, "trust_remote_code": False}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::music_evals.errors.PaddedRecordingWarning")
@pytest.mark.usefixtures("one_thread")
def test_a_folder_is_read_by_the_encoder_that_it_is_for(
    song: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transformers = pytest.importorskip("transformers")
    from music_evals.models.encoders.music import EncoderSettings, load_music_encoder

    monkeypatch.setenv("MUSIC_EVALS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "tiny"
    transformers.HubertModel(transformers.HubertConfig(**HUBERT)).save_pretrained(folder)
    extractor = transformers.Wav2Vec2FeatureExtractor(
        sampling_rate=RATE, feature_size=1, padding_value=0.0, do_normalize=True, return_attention_mask=True
    )
    extractor.save_pretrained(folder)
    out = tmp_path / "out"
    for given in (str(folder), f"mert-330m={folder}"):
        settings = Settings(out, songs=song, steps=["embeddings"], encoder=given, device="cpu")
        assert not run_preparation(settings).failures
    oracle = load_music_encoder(EncoderSettings("mert-95m", model=str(folder)), device="cpu", cache=False)
    np.testing.assert_array_equal(read_vector(out / "vectors" / "a.npy"), oracle.features(song / "a.wav"))
    told = about({**_options(str(folder)), "device": "cpu"})["encoder"]
    assert told["identity"].startswith("sha256-")
    assert str(tmp_path) not in str(told)


def test_another_encoder_is_another_vector(song: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from music_evals.audio.statistics import AudioStatistics

    out = tmp_path / "out"
    settings = Settings(out, songs=song, steps=["embeddings"], encoder="audio-statistics")
    run_preparation(settings)
    first = len(list(read_records(out / "preparation").of("preparation")))
    run_preparation(settings)
    assert len(list(read_records(out / "preparation").of("preparation"))) == first
    monkeypatch.setattr(AudioStatistics, "about", {"name": "audio-statistics", "version": 99})
    run_preparation(settings)
    assert len(list(read_records(out / "preparation").of("preparation"))) == first + 1


def test_an_encoder_that_is_not_there_is_an_error_before_anything_is_done(song: Path, tmp_path: Path) -> None:
    with pytest.raises(NoDataError, match="needs an `encoder`"):
        about(_options(None))
    with pytest.raises(UnknownNameError, match="mert-95m"):
        about(_options("mert-95"))
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    with pytest.raises(InvalidInputError, match="NAME=FOLDER"):
        about(_options(str(tmp_path / "bert")))
    with pytest.raises(ModelUnavailableError):
        run_preparation(
            Settings(tmp_path / "out", songs=song, encoder=f"mert-95m={tmp_path / 'nothing'}", device="cpu")
        )
    assert not (tmp_path / "out").exists()
