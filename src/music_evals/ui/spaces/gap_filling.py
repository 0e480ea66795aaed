"""What the inpainting page offers to fill a gap with, what was asked for and found, and how to do it again in code."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from music_evals.annotations import HOLD, MUSIB_LAYOUT, Tokens
from music_evals.benchmark.inpainting.systems import baseline_names, baseline_system, load_model
from music_evals.benchmark.versions import package_versions
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.pipelines.gap_filling import Candidate, fill_gap
from music_evals.protocols import CONTROLS
from music_evals.ui.gpu import moved_to_card, on_gpu
from music_evals.ui.widgets.roll_editor import Melody

if TYPE_CHECKING:
    from music_evals.benchmark.inpainting.systems import System

__all__ = [
    "MAX_CANDIDATES",
    "MAX_SEED",
    "MODEL",
    "Filling",
    "Places",
    "Request",
    "fill",
    "find_places",
    "python_code",
    "shell_code",
]

MODEL: Final = "anticipation_rnn"
"""The model of the page; the only system with a temperature."""

DATASET: Final = "jsb_chorales"
DATASET_CONFIG: Final = "musib"
FITTED: Final = ("markov", "corpus_prior")
"""Baselines that are fitted on the train split of the data set."""

MAX_CANDIDATES: Final = 8
MAX_SEED: Final = 2**31 - 1
MAX_TEMPERATURE: Final = 2.0


@dataclasses.dataclass(frozen=True)
class Places:
    """Where model and training data are: a folder or a Hub id; None where they are not."""

    model: str | None
    dataset: str | None

    @property
    def systems(self) -> tuple[str, ...]:
        """What can fill a gap here, the model first."""
        # a control needs the true middle, and a gap has none
        plain = [name for name in baseline_names("all") if name not in {*FITTED, *CONTROLS}]
        fitted = FITTED if self.dataset else ()
        return (*([MODEL] if self.model else []), *plain, *fitted)


@dataclasses.dataclass(frozen=True)
class Request:
    """What is asked for."""

    system: str  # `MODEL` or a baseline
    # Of the model, 0..2; 0 takes the most likely note and gives one candidate. Baselines have none.
    temperature: float = 0.25
    # 0 or more. Candidate i draws from ``numpy.random.default_rng([seed, i])``: asking for more candidates does not
    # change the first ones.
    seed: int = 0
    n_candidates: int = 4  # 1..8; a deterministic system gives one
    judge: bool = True  # true takes the middle of the melody for the true one

    def __post_init__(self) -> None:
        bounds = {"temperature": (0.0, MAX_TEMPERATURE), "seed": (0, MAX_SEED), "n_candidates": (1, MAX_CANDIDATES)}
        for name, (low, high) in bounds.items():
            value = getattr(self, name)
            whole = name == "temperature" or (isinstance(value, int) and not isinstance(value, bool))
            if not whole or not isinstance(value, int | float) or not low <= value <= high:
                raise InvalidInputError(f"{name} must lie in {low}..{high}, got {value!r:.40}")


@dataclasses.dataclass(frozen=True, eq=False)
class Filling:
    """The candidates so far, and what made them."""

    melody: Melody
    request: Request
    candidates: tuple[Candidate, ...]
    n_candidates: int
    notes: tuple[str, ...]
    receipt: Mapping[str, Any]

    @property
    def complete(self) -> bool:
        """Whether all candidates are there."""
        return len(self.candidates) == self.n_candidates

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat row a candidate."""
        about = {"system": self.request.system, "seed": self.request.seed}
        return [{"candidate": candidate.number, **about, **candidate.row} for candidate in self.candidates]

    def results(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "melody": {"first_measure": self.melody.first_measure, "tokens": self.melody.tokens},
            "candidates": [
                {
                    "candidate": candidate.number,
                    "middle": candidate.middle,
                    "scores": dict(candidate.scores),
                    "changes": None if candidate.diff is None else [one._asdict() for one in candidate.diff.changes],
                }
                for candidate in self.candidates
            ],
            "notes": list(self.notes),
            "receipt": dict(self.receipt),
        }


def find_places(root: str | os.PathLike[str]) -> Places:
    """Find the model and the data.

    They are Hub ids where the environment variable ``MUSIC_EVALS_ORG`` names an organisation; else folders of the
    repository at `root`; else, on the Hub, repositories of the Space's owner.
    """
    named = os.environ.get("MUSIC_EVALS_ORG", "").strip()
    if named:
        return Places(f"{named}/{MODEL}", f"{named}/{DATASET}")
    owner = os.environ.get("SPACE_AUTHOR_NAME", "").strip()
    model, dataset = Path(root) / "models" / MODEL, Path(root) / "datasets_scripts" / DATASET
    return Places(
        str(model) if (model / "model.safetensors").is_file() else f"{owner}/{MODEL}" if owner else None,
        str(dataset) if (dataset / "data").is_dir() else f"{owner}/{DATASET}" if owner else None,
    )


def fill(places: Places, melody: Melody, request: Request) -> Iterator[Filling]:
    """Fill the gap: the first value has no candidate yet, each following one has one more."""
    if request.system not in places.systems:
        raise UnknownNameError("system", request.system, places.systems)
    system = _load(places, request.system, request.temperature if request.system == MODEL else None)
    n = 1 if system.inpainter is None or system.inpainter.deterministic else request.n_candidates
    begun = Filling(melody, request, (), n, _notes(melody, request, n), _receipt(system, request, n))
    draw = _fill_on_gpu if request.system == MODEL else _fill
    yield begun
    found: list[Candidate] = []
    for candidate in draw(system.inpainter, melody.tokens, request):
        found.append(candidate)
        yield dataclasses.replace(begun, candidates=tuple(found))


def _fill(inpainter: Any, context: Tokens, request: Request) -> Iterator[Candidate]:
    n = request.n_candidates
    yield from fill_gap(context, inpainter, seed=request.seed, n_candidates=n, judge=request.judge)


@on_gpu(duration=60)
def _fill_on_gpu(inpainter: Any, context: Tokens, request: Request) -> Iterator[Candidate]:
    """Yield what `_fill` yields, drawn by a network on the card where there is one."""
    with moved_to_card(inpainter):
        yield from _fill(inpainter, context, request)


@functools.lru_cache(maxsize=8)
def _load(places: Places, name: str, temperature: float | None) -> System:
    """Load a system; those of the last requests are kept."""
    if name == MODEL:
        return load_model(str(places.model), temperature=temperature)
    return baseline_system(name, _train(str(places.dataset)) if name in FITTED else None)


@functools.lru_cache(maxsize=1)
def _train(dataset: str) -> Tokens:
    from music_evals.benchmark.inpainting.items import load_items

    return load_items(dataset, DATASET_CONFIG, "train").contexts


def _notes(melody: Melody, request: Request, n: int) -> tuple[str, ...]:
    """Return what a reader should know of this filling."""
    found = []
    if n < request.n_candidates:
        found.append(f"{request.system} uses no randomness here: there is one candidate, whatever the seed.")
    if request.judge and not (melody.tokens[MUSIB_LAYOUT.middle] < HOLD).any():
        found.append("The gap of your melody has no note of its own: silence is taken for the true middle.")
    return tuple(found)


def _receipt(system: System, request: Request, n: int) -> dict[str, Any]:
    details = {key: value for key, value in system.details.items() if value is not None}
    if Path(str(details.get("source", ""))).is_absolute():  # a folder here: its path is nobody's business
        details["source"] = Path(str(details["source"])).name
    return {
        "system": system.name,
        **details,
        "hash of weights, configuration and training data": system.content_hash,
        "seed": request.seed,
        "candidates": n,
        "metric variant": "corrected",
        "versions": package_versions(),
    }


_CODE = """\
from music_evals.benchmark.inpainting.systems import {imported}
from music_evals.pipelines.gap_filling import fill_gap
from music_evals.ui.widgets.roll_editor import read_melody

melody = read_melody(
    '{melody}'
)
{system}
candidates = list(fill_gap(melody.tokens, system.inpainter, seed={seed}, n_candidates={n}, judge={judge}))
for candidate in candidates:
    print(candidate.row)
"""


def python_code(places: Places, filling: Filling) -> str:
    """Return a script that gives the same candidates and scores."""
    from music_evals.ui.widgets.roll_editor import write_melody

    request = filling.request
    if request.system == MODEL:
        place = _place(places.model, MODEL, filling)
        imported, system = "load_model", f'system = load_model("{place}", temperature={request.temperature:g})'
    elif request.system in FITTED:
        imported = "baseline_system"
        system = (
            "from music_evals.benchmark.inpainting.items import load_items\n\n"
            f'train = load_items("{_place(places.dataset, DATASET, filling)}", "{DATASET_CONFIG}", "train").contexts\n'
            f'system = baseline_system("{request.system}", train)'
        )
    else:
        imported, system = "baseline_system", f'system = baseline_system("{request.system}", None)'
    return _CODE.format(
        imported=imported,
        melody=write_melody(filling.melody),
        system=system,
        seed=request.seed,
        n=filling.n_candidates,
        judge=request.judge,
    )


def shell_code(filling: Filling) -> str:
    """Return the command that judges the candidates of the downloaded archive again."""
    if not filling.request.judge:
        return "# the true middle is not known: there is nothing to judge; see the Python"
    return (
        "# pairs.zip is the MIDI download of the page: the same middles against the same truth\n"
        "unzip pairs.zip -d pairs\n"
        "music-evals inpainting --pairs pairs --baselines none --resamples 0 --out results/pairs"
    )


def _place(place: str | None, name: str, filling: Filling) -> str:
    """Return what a reader's own machine calls a place: a Hub id with its revision, or a name in a clone."""
    if place is None or os.path.isdir(place):  # noqa: PTH112  (a Hub id is no path)
        return name
    revision = filling.receipt.get("revision")
    return f"{place}@{revision}" if revision and name == MODEL else place
