"""What the modules under `metrics/` have in common, by the kind of thing that they judge.

`test_modules.py` holds every module to the same laws. A new metric of a kind that is here needs no entry: its scores,
ranges and directions come from the catalogue, its kind and variants from the base class of its module.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from tests.conformance.rules import ROOT, subfolders, text_of

from music_evals import hf
from music_evals.annotations import Score
from music_evals.audio.io import Audio, AudioPolicy, load_audio
from music_evals.hf.module import Module
from music_evals.metrics.catalogue import (
    CATALOGUE,
    CELL_SCORES,
    EDITING_SCORES,
    EFFORT_RATIOS,
    INPAINTING_METRICS,
    LYRIC_SCORES,
    PRESERVATION_METRICS,
    SUCCESS_SCORES,
    TEXT_SCORES,
)
from music_evals.pipelines.edit_success import evaluate_edit_success
from music_evals.pipelines.edits.text_audio import evaluate_lpaps, evaluate_text_similarity
from music_evals.pipelines.inpainting import evaluate_inpainting, evaluate_nll
from music_evals.pipelines.lyric_content import evaluate_diversity, evaluate_themes, evaluate_wordlikeness
from music_evals.pipelines.lyrics import evaluate_lyrics
from music_evals.pipelines.preservation import FACETS, evaluate_preservation
from music_evals.pipelines.style_transfer.cell_prediction import evaluate_cells
from music_evals.pipelines.tags import evaluate_tags
from music_evals.symbolic.notes import make_notes

__all__ = [
    "EXTRAS", "FAMILIES", "FOLDERS", "NAMES", "SCORES", "Family", "family_of", "is_drawn", "kind_of", "variants_of",
]  # fmt: skip

Pair = tuple[Any, Any]
"""One item: its reference, None where there is none, and the prediction."""

FOLDERS = subfolders("metrics")
NAMES = [path.name for path in FOLDERS]

SCORES: Mapping[str, Sequence[str]] = (
    {name: [name] for name in NAMES}
    | {"musical_inpainting": list(INPAINTING_METRICS), "music_context_preservation": list(PRESERVATION_METRICS)}
    | {f"{facet}_preservation": list(names) for facet, names in FACETS.items()}
    | {"lyric_structure": [*LYRIC_SCORES, "lyric_wordlikeness"], "piano_roll_error_rate": list(CELL_SCORES)}
    | {"editing_effort_ratio": list(EFFORT_RATIOS), "editing_test": list(EDITING_SCORES)}
    | {"edit_success": list(SUCCESS_SCORES)}
    | {"text_audio_similarity": [name for name in TEXT_SCORES if name != "lpaps"]}
)
"""What each module returns; a module of several scores names them."""

EXTRAS = {
    "edit_success": ["edit_success_chance", "by_kind"],
    "text_audio_similarity": [
        "text_audio_similarity_chance", "text_direction_chance", "text_audio_similarity_original", "encoder",
    ],
    "lpaps": ["lpaps_chance", "encoder"],
    "tag_semantic_similarity": ["tag_semantic_similarity_std", "encoder"],
    "lyric_diversity": [
        "lyric_diversity_range", "lyric_diversity_in_range", "lyric_line_repetition", "lyric_line_repetition_reference",
    ],
    "lyric_theme_similarity": ["lyric_theme_similarity_other", "encoder"],
    "lyric_wordlikeness": [
        "lyric_wordlikeness_reference", "lyric_wordlikeness_range", "lyric_wordlikeness_in_range", "lyric_word_share",
        "lyric_word_share_reference",
    ],
}  # fmt: skip
"""What a result holds beside its scores."""


def _base_of(name: str) -> type[Module]:
    """Return the base class that the script of a module names; the script is not run."""
    base = re.search(r"^class \w+\(mh\.(\w+)\):", text_of(ROOT / "metrics" / name / f"{name}.py"), re.MULTILINE)
    assert base, f"metrics/{name}: its class has no base class of music_evals.hf"
    return getattr(hf, base[1])


def kind_of(name: str) -> str:
    """Return what a module judges."""
    return _base_of(name).kind


def variants_of(name: str) -> tuple[str, ...]:
    """Return the variants of a module; none where there is one formula."""
    return _base_of(name).variants


def is_drawn(name: str) -> bool:
    """Tell whether a module draws resamples: those with a divergence do."""
    return any(CATALOGUE[score].kind == "set" for score in SCORES[name])


@dataclasses.dataclass(frozen=True)
class Family:
    """How to try modules of one kind.

    Parameters
    ----------
    draw
        Draws one item at random.
    perfect
        Draws one item whose prediction cannot be better.
    evaluate
        What a module must equal: the library's function, of the module's name, the inputs and options.
    n_items
        As many as differ, and no more than take a second.
    options
        Keep a module from weights, or from a dictionary that takes long to load.
    others
        Options of its own, each compared with the library.
    wrong
        An option and a value that is nearly right, and which value that is.
    averages_items
        Options under which a score is the mean over items.
    tolerance
        How near to the best a perfect prediction comes; the official code of lyrics divides by a little too much.
    """

    draw: Callable[[np.random.Generator], Pair]
    perfect: Callable[[np.random.Generator], Pair]
    evaluate: Callable[..., Mapping[str, Any]]
    n_items: int = 12
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    others: Sequence[Mapping[str, Any]] = ()
    wrong: tuple[str, str, str] | None = None
    averages_items: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    tolerance: float = 1e-6

    def inputs(self, rng: np.random.Generator, n: int | None = None, *, perfect: bool = False) -> dict[str, Any]:
        """Draw items and return them as `compute` takes them."""
        items = [(self.perfect if perfect else self.draw)(rng) for _ in range(n or self.n_items)]
        references, predictions = ([item[side] for item in items] for side in (0, 1))
        return {"predictions": predictions} | ({"references": references} if references[0] is not None else {})


def _whatever_the_name(evaluate: Callable[..., Mapping[str, Any]]) -> Callable[..., Mapping[str, Any]]:
    return lambda _name, references, predictions, **options: evaluate(references, predictions, **options)


def _context(rng: np.random.Generator) -> Pair:
    """Random music, one onset about every third step and some rests; half of the middle is right."""
    tokens, middle = np.where(rng.random(384) < 0.3, rng.integers(55, 80, 384), 128), rng.integers(55, 130, 96)
    tokens[rng.random(384) < 0.1] = 129
    tokens[144] = 60
    middle = np.where(rng.random(96) < 0.5, tokens[144:240], middle)
    return tokens.astype(np.uint8), middle.astype(np.uint8)


def _filled(rng: np.random.Generator) -> Pair:
    tokens, _ = _context(rng)
    return tokens, tokens[144:240]


def _evaluate_contexts(name: str, references: Any, predictions: Any, **options: Any) -> Mapping[str, Any]:
    return evaluate_inpainting(np.array(references), np.array(predictions), metrics=SCORES[name], **options)


def _piece(rng: np.random.Generator, n_bars: int = 8) -> Score:
    """Bars of 2 s at 120 quarters a minute: triads below a tune of quarters and rests, in two sections of their own."""
    rows = []
    for bar in range(n_bars):
        low = 36 if bar < n_bars // 2 else 60
        root = low + int(rng.choice([0, 5, 7]))
        rows += [(1920 * bar, 1920, root + step, 0) for step in (0, 4, 7)]
        starts = [beat for beat in range(4) if rng.random() < 0.8]
        rows += [(1920 * bar + 480 * beat, 480, low + 24 + int(rng.integers(12)), 1) for beat in starts]
    onsets, durations, pitches, voices = zip(*rows, strict=True)
    return Score(make_notes(onsets, durations, pitches, voice=voices), 480, voices=("Chords", "Melody"))


def _edit(rng: np.random.Generator) -> Pair:
    """A third of the notes moved by a tone; nothing else, so that even the official code can compare."""
    piece = _piece(rng)
    notes = piece.notes.copy()
    notes["pitch"] += np.where(rng.random(len(notes)) < 0.3, 2, 0).astype(np.uint8)
    return piece, Score(make_notes(*(notes[name] for name in notes.dtype.names)), 480, voices=piece.voices)


def _tune(rng: np.random.Generator, steepness: float) -> Audio:
    """Eight notes of 0.3 s, whose partials fall with their number to this power."""
    time_sec = np.arange(6615) / 22050
    hz = 440 * 2 ** (rng.integers(-12, 3, 8) / 12)
    tones = [sum(np.sin(2 * np.pi * n * each * time_sec) / n**steepness for n in range(1, 13)) for each in hz]
    return load_audio(np.concatenate([tone * np.exp(-5 * time_sec) for tone in tones]).astype(np.float32), rate=22050)


def _played(rng: np.random.Generator) -> Pair:
    """Two tunes, of which the second sounds a little duller."""
    return _tune(rng, 1.0), _tune(rng, 1.2)


def _played_again(rng: np.random.Generator) -> Pair:
    return (_tune(rng, 1.0),) * 2


def _evaluate_edits(name: str, references: Any, predictions: Any, **options: Any) -> Mapping[str, Any]:
    return evaluate_preservation(references, predictions, metrics=SCORES[name], **options)


def _request(rng: np.random.Generator) -> Pair:
    """A third of the notes is moved by a tone, which reaches none of these targets for certain."""
    piece, edited = _edit(rng)
    return {"source": piece, "targets": {"transpose": "+2", "length": "0.5x"}}, edited


def _reached(rng: np.random.Generator) -> Pair:
    piece = _piece(rng)
    notes = piece.notes.copy()
    notes["pitch"] += 2
    moved = Score(make_notes(*(notes[name] for name in notes.dtype.names)), 480, voices=piece.voices)
    return {"source": piece, "targets": "transpose=+2"}, moved


def _evaluate_requests(_name: str, references: Any, predictions: Any, **options: Any) -> Mapping[str, Any]:
    sources, targets = ([request[key] for request in references] for key in ("source", "targets"))
    return evaluate_edit_success(sources, predictions, targets, **options)


class Ear:
    """An encoder without weights: the samples are the vector, and a text is one that its letters give.

    Nothing else has edits that cannot be better. `tests/models/encoders/test_text_audio.py` has the real classes.
    """

    about: Mapping[str, Any] = {"name": "ear", "revision": "1", "precision": "fp32", "window_sec": 0.016}
    rate = 8000

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([np.random.default_rng([*text.encode()]).normal(size=128) for text in texts]).astype(np.float32)

    def encode_audio(self, samples: np.ndarray) -> np.ndarray:
        return samples

    def layers(self, samples: np.ndarray) -> Iterator[list[np.ndarray]]:
        yield [samples.reshape(-1, 8), samples.reshape(-1, 2)]


def _sounding(vector: np.ndarray) -> Audio:
    samples = (vector / np.abs(vector).max()).astype(np.float32)
    return Audio(samples, sample_rate=Ear.rate, policy=AudioPolicy(sample_rate=Ear.rate))


def _two_texts(rng: np.random.Generator) -> tuple[dict[str, str], np.ndarray]:
    """What an original and its edit are to sound like, and the vectors of both."""
    instruments = rng.choice(["piano", "guitar", "flute", "drums", "choir", "organ"], 2, replace=False)
    before, text = (f"{rng.choice(['slow', 'happy', 'dark', 'loud'])} {instrument}" for instrument in instruments)
    return {"text": text, "source_text": before}, Ear().encode_texts([before, text])


def _described(rng: np.random.Generator) -> Pair:
    """Half of the way to the text, and much else."""
    texts, vectors = _two_texts(rng)
    original = vectors[0] + rng.normal(size=128)
    return texts | {"source": _sounding(original)}, _sounding(original + vectors[1] + rng.normal(size=128))


def _as_described(rng: np.random.Generator) -> Pair:
    texts, (original, edit) = _two_texts(rng)
    return texts | {"source": _sounding(original)}, _sounding(edit)


def _evaluate_captions(_name: str, references: Any, predictions: Any, **options: Any) -> Mapping[str, Any]:
    sources, texts, before = ([request[key] for request in references] for key in ("source", "text", "source_text"))
    return evaluate_text_similarity(sources, predictions, texts, source_texts=before, **options)


def _near(rng: np.random.Generator) -> Pair:
    original = rng.normal(size=128)
    return _sounding(original), _sounding(original + rng.normal(size=128))


def _same_sound(rng: np.random.Generator) -> Pair:
    return (_sounding(rng.normal(size=128)),) * 2


def _roll(rng: np.random.Generator) -> Pair:
    """A roll of which about a tenth sounds, and probabilities of which few are far from it."""
    truth = rng.random((int(rng.integers(8, 40)), 84)) < 0.1
    return truth, np.clip(truth + rng.normal(0, 0.3, truth.shape), 0.01, 0.99)


def _true_roll(rng: np.random.Generator) -> Pair:
    truth, _ = _roll(rng)
    return truth, truth


def _song(rng: np.random.Generator) -> Pair:
    """A pattern, and lyrics of random characters in its sections that keep it but for some lines."""
    words, pattern = [], []
    for label in rng.choice(["verse", "chorus", "bridge"], size=3):
        words.append(f"({label})")
        pattern.append(f"({label})")
        for _ in range(4):
            length = int(rng.integers(4, 8))
            words.append("".join(rng.choice(list("春眠不觉晓处闻啼鸟夜来风雨声花落知多少"), size=length)))
            pattern.append("c" * (length - 1 + int(rng.integers(0, 2))) + str(rng.choice(["c", "R"])))
    return "\n".join(pattern), "\n".join(words)


PATTERN = "(verse)\nccccR\nccccR\nccccc\nccccR"
POEMS = (
    "(verse)\n床前明月光\n疑是地上霜\n举头望明月\n低头思故乡",
    "(verse)\n春眠不觉晓\n处处闻啼鸟\n夜来风雨声\n花落知多少",
)


def _poem(_rng: np.random.Generator) -> Pair:
    return PATTERN, POEMS[0]


def _words(rng: np.random.Generator) -> Pair:
    return _song(rng)[1], _song(rng)[1]


def _same_words(rng: np.random.Generator) -> Pair:
    return (POEMS[rng.integers(2)],) * 2


def _theme(rng: np.random.Generator) -> Pair:
    """The theme is the lyrics themselves, without their header and with commas between the lines, as they are read."""
    lyrics = _same_words(rng)[1]
    _, *lines = lyrics.splitlines()
    return "，".join(lines), lyrics


def _evaluate_words(name: str, references: Any, predictions: Any, **options: Any) -> Mapping[str, Any]:
    functions = {"lyric_diversity": evaluate_diversity, "lyric_wordlikeness": evaluate_wordlikeness}
    return functions[name](references, predictions, **options)


def _tags(rng: np.random.Generator) -> Pair:
    words = ["抒情", "慢速", "快速", "钢琴", "钢琴伴奏", "流行", "民谣"]
    return tuple([str(tag) for tag in rng.choice(words, size=3, replace=False)] for _ in range(2))


def _same_tag(rng: np.random.Generator) -> Pair:
    """One alone: of several, each is compared with all."""
    (tag, *_), _ = _tags(rng)
    return [tag], [tag]


_BY_LETTERS = {"encoder": "char-ngrams"}

FAMILIES: Mapping[str, Family] = {
    "contexts": Family(_context, _filled, _evaluate_contexts, wrong=("variant", "correct", "corrected")),
    "numbers": Family(
        lambda rng: (None, np.log(rng.uniform(0.01, 1, 96))),
        lambda _rng: (None, np.zeros(96)),
        lambda _name, predictions, **options: evaluate_nll(predictions, **options),
    ),
    "edits": Family(
        _edit, lambda rng: (_piece(rng),) * 2, _evaluate_edits, n_items=4, wrong=("variant", "correct", "corrected")
    ),
    "recordings": Family(_played, _played_again, _evaluate_edits, n_items=3, wrong=("variant", "correct", "corrected")),
    "targets": Family(_request, _reached, _evaluate_requests, n_items=4),
    "captions": Family(_described, _as_described, _evaluate_captions, options={"encoder": Ear()}),
    "nearness": Family(_near, _same_sound, _whatever_the_name(evaluate_lpaps), options={"encoder": Ear()}),
    "rolls": Family(
        _roll,
        _true_roll,
        _whatever_the_name(evaluate_cells),
        others=[{"average": "macro"}],
        wrong=("average", "micr", "micro"),
        averages_items={"average": "macro"},
    ),
    "lyrics": Family(
        _song,
        _poem,
        _whatever_the_name(evaluate_lyrics),
        options={"rhyme": "char"},
        wrong=("variant", "oficial", "official"),
        tolerance=0.1,
    ),
    "words": Family(_words, _same_words, _evaluate_words),
    "themes": Family(_words, _theme, _whatever_the_name(evaluate_themes), options=_BY_LETTERS),
    "tags": Family(
        _tags,
        _same_tag,
        _whatever_the_name(evaluate_tags),
        options=_BY_LETTERS,
        others=[{"aggregation": "f1"}, {"normalize_by_self": True}],
        wrong=("aggregation", "best match", "best_match"),
    ),
}
"""Kind -> how its modules are tried. A study is one item, and no list of pairs: `tests/test_hf_studies.py`."""


def family_of(name: str) -> Family:
    """Return how a module is tried; scores have no timbre."""
    return FAMILIES["recordings" if name == "timbre_similarity" else kind_of(name)]
