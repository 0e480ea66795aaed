"""What an edit costs: the formulas against the calls of tiny models."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from tests.editing.house import audio_request, score_request

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")
from tests.editing.test_refinpaint import asked  # noqa: E402
from tests.editing.test_refinpaint import networks as tiny_networks  # noqa: E402
from tests.editing.tiny_audioldm2 import tiny_pipeline  # noqa: E402
from tests.editing.tiny_musicgen import tiny_musicgen  # noqa: E402

from benchmarks.editing import cost  # noqa: E402
from music_evals.annotations import EditInstruction  # noqa: E402
from music_evals.editing import refinpaint_networks as networks  # noqa: E402
from music_evals.editing import refinpaint_tokens  # noqa: E402
from music_evals.editing.audioldm2 import AudioLDM2  # noqa: E402
from music_evals.editing.musicgen import MusicGen  # noqa: E402
from music_evals.editing.musicgen_melody import MusicGenMelody  # noqa: E402
from music_evals.editing.musicmagus import MusicMagus  # noqa: E402
from music_evals.editing.refinpaint import RefinPaint  # noqa: E402
from music_evals.editing.zeta import Zeta  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")
ROCK = EditInstruction(text="Rock to jazz.", source_prompt="a rock song", before="rock", after="jazz")


class Counter:
    def __init__(self, module: Any) -> None:
        self.n = 0
        module.register_forward_pre_hook(self._count)

    def _count(self, *_: Any) -> None:
        self.n += 1


@pytest.mark.parametrize("kind", [MusicGen, MusicGenMelody])
def test_musicgen_calls_its_decoder_once_a_frame(kind: Any) -> None:
    model = tiny_musicgen(kind._name)
    counter = Counter(model.model.decoder)
    kind(model).edit([audio_request(ROCK, seconds=0.5)])
    assert counter.n == cost.BY_SECONDS[kind._name]({}, 0.5).edit


@pytest.mark.slow
@pytest.mark.parametrize(("system", "given"), [(Zeta, {"steps": 5, "start": 3}), (MusicMagus, {"steps": 3})])
def test_audioldm2_calls_its_network_by_the_formula(system: Any, given: dict[str, int]) -> None:
    model = AudioLDM2(tiny_pipeline())
    counter = Counter(model.pipeline.unet)
    made = system(model, **given)
    by_formula = cost.BY_SECONDS[made.info.name](made.info.parameters, 1.0)
    requests = [audio_request(dataclasses.replace(ROCK, after=word), seconds=1) for word in ("jazz", "calm")]
    made.edit(requests)
    assert counter.n == by_formula.study(1, 2)


@pytest.mark.parametrize("confidence", [0, 5, 7])
def test_refinpaint_draws_by_the_formula(confidence: int, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    plain = networks.draw

    def counted(*given: Any) -> int:
        drawn.append(1)
        return plain(*given)

    monkeypatch.setattr(networks, "draw", counted)
    request = score_request(asked(bars=(0, 2), confidence=confidence))
    tokens = refinpaint_tokens.encode(request.score)
    n_tokens = int((tokens.tokens[: tokens.bars[2]] != refinpaint_tokens.BAR).sum())
    RefinPaint(tiny_networks()).edit([request])
    assert len(drawn) == cost.refinpaint(n_tokens, confidence).edit > 0


def test_the_page_has_the_table(root: Path) -> None:
    page = (root / "benchmarks/editing/README.md").read_text(encoding="utf-8")
    assert cost.table() in page
    assert cost.zeta(cost.published("zeta"), 30.0).study(107, 696) == 107 * 400 + 696 * 200


def test_the_page_of_table_2_has_the_calls_of_the_formulas() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs/table2_on_one_gpu.md").read_text(encoding="utf-8")
    for system, (n_sources, n_edits, seconds) in cost.STUDIES.items():
        calls = cost.BY_SECONDS[system](cost.published(system), seconds).study(n_sources, n_edits)
        assert f"| `{system}` | {calls:,}" in page
    assert f"at most {10 * (1 + 512):,} an edit" in page  # in each round a call of the feedback, and one a token
