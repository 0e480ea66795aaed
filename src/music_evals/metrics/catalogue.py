"""The one table of every published score: its name and title, range, direction, unit, kind, facet and paper.

Pipelines, the command line, cards, reports, leaderboards and pages read a score's facts from here. Each task has a
block of its own, in the order of its results; a task is added by a block.

Papers are named by the key of their BibTeX entry, which stands on the card of the metric: Araneda-Hernandez et al.,
MUSIB (2023); Vishe et al., MuseCPBench (2025); Wang et al., MuChin (IJCAI 2024); Lu et al., "Actions speak louder than
listening" (ACM MM 2021); Li et al., distinct-n (NAACL 2016); Reimers and Gurevych, Sentence-BERT (EMNLP 2019).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from music_evals.annotations import DIMENSIONS, SCORED
from music_evals.deprecation import module_getattr
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.metrics.arrays import MUSECPEVAL, OF_AUTHORS, PRESERVATION_VARIANTS, check_variant
from music_evals.metrics.lyric_content import WORDS_OF_PEOPLE
from music_evals.metrics.lyric_structure import MAXIMUM

__all__ = [
    "AUXILIARY", "CATALOGUE", "CELL_SCORES", "DESCRIPTION_SCORES", "DIRECTIONS", "EDITING_SCORES", "EFFORT_RATIOS",
    "HIDDEN_CELL_SCORES", "INPAINTING_EXTENSIONS", "INPAINTING_METRICS", "LIKELIHOODS", "LYRIC_CONTENT",
    "LYRIC_SCORES", "MELODY_SCORES", "PRESERVATION_METRICS", "RELEASES", "RELEASE_SCORES", "SHOWN_AUXILIARY",
    "STYLE_SCORES", "SUCCESS_SCORES", "TEXT_SCORES", "Metric", "block", "features_of", "metric_of", "select_names",
]  # fmt: skip

DIRECTIONS: Final = ("higher", "lower", "zero", "none")
"""What is better of a score, see `Metric`."""
KINDS: Final = ("item", "set")


@dataclasses.dataclass(frozen=True)
class Metric:
    """What a reader must know of a score before comparing it.

    Parameters
    ----------
    name
        Key of its results. A score with a folder under ``metrics/`` has the folder's name.
    title
        As on its card.
    facet
        Scores of one facet share a table: ``"inpainting"``; ``"harmony"``, ``"rhythm"``, ``"structure"``,
        ``"melody"`` or ``"timbre"`` of music; ``"success"`` or ``"nearness"`` of edits; ``"cells"``, ``"style"`` or
        ``"melody kept"`` of piano rolls; ``"effort"`` or ``"answers"`` of editing tests; ``"lyrics"``,
        ``"lyrics, corrected"`` or ``"lyrics, content"``; ``"average"``, ``"professional"`` or ``"amateur"`` of
        descriptions.
    low, high
        Range, under the default variant.
    direction
        ``"higher"`` or ``"lower"`` is better; ``"zero"``: nearer to 0 is better, the sign tells which way it went;
        ``"none"``: a rate that is compared with the reference's own.
    task
        Which benchmark publishes it.
    paper
        BibTeX key of its source; empty where it is our own.
    heading
        Of its column in tables and pictures; the title where empty.
    unit
        Empty for a number without one.
    kind
        ``"item"``: a mean over items. ``"set"``: one value for the whole set.
    features
        Fields of `music_evals.annotations.Features` that it compares; `features_of` knows the variants. None for tokens
        and texts.
    chance
        Mean over pairs of unrelated pieces with the default extractors: the held-out half of `known_edits`, both
        renderers (responses.csv, of timbre timbre.csv in ``benchmarks/preservation_validity``). A guide and no
        constant: of scores with a later definition it is that of the first one, as long as the table is. NaN where it
        was not measured or says nothing.
    definition
        Version of its formula and its extractors, counted up where a version of this package changes what the
        score means: results of another definition are labelled, and never ranked together. The authors' variants
        never change; ``paper`` keeps its formulas, but its extractors are those of ``corrected``.
    description
        What it measures, in a phrase, where no card of its own says it.
    unseen
        Made of the others: between which ends a source may score that a sample lacks, for the interval of the mean. An
        extractor hears nearly all recordings and fails at a few, whose scores are anything from best to worst: 0 is the
        worst of a similarity, `chance` of a score without an upper end. None where no extractor is behind the score.

    Raises
    ------
    InvalidInputError
        A direction or kind that does not exist, a range whose ends are swapped, or a definition below 1.
    """

    name: str
    title: str
    facet: str
    low: float = 0.0
    high: float = 1.0
    direction: str = "higher"
    task: str = ""
    paper: str = ""
    heading: str = ""
    unit: str = ""
    kind: str = "item"
    features: tuple[str, ...] = ()
    chance: float = math.nan
    definition: int = 1
    description: str = ""
    unseen: tuple[float, float] | None = dataclasses.field(init=False, default=None)

    def __post_init__(self) -> None:
        is_known = self.direction in DIRECTIONS and self.kind in KINDS
        if not is_known or not self.low < self.high or self.definition < 1:
            raise InvalidInputError(
                f"{self.name}: expected a direction of {', '.join(DIRECTIONS)}, a kind of {', '.join(KINDS)}, a range "
                f"with its lower end first and a definition from 1 on; got {self.direction!r}, {self.kind!r}, "
                f"{self.low:g} to {self.high:g} and {self.definition}"
            )
        object.__setattr__(self, "heading", self.heading or self.title)
        low = max(self.low, 0.0) if self.direction == "higher" else self.low  # a failure is no opposite
        high = self.high if math.isfinite(self.high) else self.chance
        object.__setattr__(self, "unseen", (low, high) if self.features and math.isfinite(high - low) else None)

    @property
    def best(self) -> float:
        """The best that can be had: of preservation, the value of a recording compared with itself."""
        return {"higher": self.high, "lower": self.low, "zero": 0.0, "none": math.nan}[self.direction]

    def definition_under(self, variant: str) -> int:
        """Return the number of the formula that this version computes under a variant."""
        return 1 if variant in OF_AUTHORS else self.definition

    def features_under(self, variant: str) -> tuple[str, ...]:
        """Return the features that it compares under a variant: motifs are made of notes, the authors' of f0 or chroma.

        Of a metric of music context preservation, or of an auxiliary one, and a variant that exists.
        """
        is_motif = self.name in PRESERVATION_METRICS and self.features == ("melody",)
        return (
            {"official": ("f0",), MUSECPEVAL: ("contour",)}.get(variant, self.features) if is_motif else self.features
        )

    def heading_of(self, variant: str, definition: int) -> str:
        """Return the heading of results, which names their definition where this version has another one."""
        is_current = definition == self.definition_under(variant)
        return self.heading if is_current else f"{self.heading}, definition {definition}"


def block(*metrics: Metric) -> Mapping[str, Metric]:
    """Return the metrics by name, in this order."""
    return MappingProxyType({metric.name: metric for metric in metrics})


_INF, _LN2 = math.inf, math.log(2)

# Score inpainting. Divergences are in nats, at most ln 2 (Jensen-Shannon).
_inpainting = functools.partial(Metric, facet="inpainting", task="inpainting", paper="araneda2023musib")
_divergence = functools.partial(_inpainting, high=_LN2, direction="lower", unit="nats", kind="set")

INPAINTING_METRICS: Final = block(
    _inpainting("position_score", "Position score", heading="position"),
    _inpainting("pitch_accuracy", "Pitch accuracy", heading="pitch acc."),
    _inpainting("rhythm_accuracy", "Rhythm accuracy", heading="rhythm acc."),
    _inpainting("note_f1", "Note F1", heading="note F1"),
    _divergence("silence_divergence", "Silence divergence", heading="silence div."),
    _divergence("pitch_class_divergence", "Pitch-class divergence", heading="pitch-class div."),
    _divergence("groove_divergence", "Groove divergence", heading="groove div."),
)
"""The metrics of filled middles."""

INPAINTING_EXTENSIONS: Final = block(
    _divergence("interval_divergence", "Interval divergence", heading="interval div."),
    _inpainting("repeated_note_rate", "Repeated note rate", direction="none", paper="", heading="repeated notes"),
    _inpainting("consonance_pitch_accuracy", "Consonance pitch accuracy", heading="consonance"),
    _inpainting("self_replication_rate", "Self-replication rate", direction="none", heading="self-replication"),
)
"""What the authors name as future work, and the rate of repeated notes; computed where asked for. The tables of the
benchmark show the first two beside note F1: they see the monotone output that it rewards."""

LIKELIHOODS: Final = block(
    _inpainting("inpainting_nll", "Inpainting NLL", high=_INF, direction="lower", unit="nats a step", heading="NLL")
)
"""The metric of models that give a likelihood."""

# Music context preservation: what an edit keeps of a recording or score. The auxiliary metrics are our own.
_auxiliary = functools.partial(Metric, task="preservation")
_music = functools.partial(_auxiliary, paper="vishe2025musecpbench")

PRESERVATION_METRICS: Final = block(
    _music(
        "circle_of_fifths_distance", "Circle-of-fifths distance", "harmony", direction="lower", features=("key",),
        chance=0.44, definition=3,
    ),
    _music("major_minor_score", "Major-minor score", "harmony", features=("chords",), chance=0.06, definition=3),
    _music(
        "chroma_dtw_similarity", "Chroma DTW similarity", "harmony", features=("chroma",), chance=0.30, definition=3,
    ),
    _music(
        "delta_bpm", "Delta BPM", "rhythm", high=_INF, direction="lower", unit="BPM", features=("beats",),
        chance=24.4, definition=2,
    ),
    _music("beat_f_measure", "Beat F-measure", "rhythm", features=("beats",), chance=0.30, definition=3),
    _music("information_gain", "Information gain", "rhythm", features=("beats",), chance=0.16, definition=3),
    _music("segment_ari", "Segment ARI", "structure", low=-1.0, features=("segments",), chance=0.36, definition=2),
    _music(
        "boundary_f_measure", "Boundary F-measure", "structure", heading="Boundary F, 0.5 s", features=("segments",),
        chance=0.14, definition=2,
    ),
    _music("voicing_recall", "Voicing recall", "melody", features=("f0",), chance=0.87, definition=2),
    _music("motif_jaccard", "Motif Jaccard", "melody", features=("melody",), chance=0.05, definition=3),
    _music("motif_recall", "Motif recall", "melody", features=("melody",), chance=0.10, definition=3),
)  # fmt: skip
"""The eleven metrics of music context preservation."""

RELEASE_SCORES: Final = block(
    _music("mean_chroma_cosine", "Mean chroma cosine", "harmony", features=("chroma",)),
    _music("segment_pairwise_f", "Segment pairwise F", "structure", features=("segments",)),
    _music("contour_dtw_similarity", "Contour DTW similarity", "melody", features=("contour",)),
    _music("mfcc_skl_similarity", "MFCC SKL similarity", "timbre", features=("timbre",)),
    _music("mean_mfcc_cosine", "Mean MFCC cosine", "timbre", low=-1.0, features=("timbre",)),
)
"""What the package of the authors has and the paper has not; under its variant only."""

RELEASES: Final[Mapping[str, tuple[str, ...]]] = {
    MUSECPEVAL: (
        "circle_of_fifths_distance", "chroma_dtw_similarity", "mean_chroma_cosine", "delta_bpm", "beat_f_measure",
        "information_gain", "segment_pairwise_f", "segment_ari", "contour_dtw_similarity", "motif_recall",
        "mfcc_skl_similarity", "mean_mfcc_cosine",
    )
}  # fmt: skip
"""Variant of a release -> what it publishes, facet by facet, in place of the eleven."""

_signed = functools.partial(
    _auxiliary, facet="rhythm", low=-_INF, high=_INF, direction="zero", features=("beats",), unit="octaves"
)

AUXILIARY: Final = block(
    _auxiliary(
        "same_mode", "Same mode", "harmony", features=("key",), definition=2,
        description="Whether both keys are major, or both minor.",
    ),
    _auxiliary(
        "chroma_dtw_centred", "Chroma DTW, centred", "harmony", low=-1.0, features=("chroma",), chance=0.26,
        definition=3,
        description="Chroma DTW by correlation: frames of 0.19 s less their mean, warped by at most 10 %.",
    ),
    _auxiliary(
        "chroma_dtw_centred_transposed", "Chroma DTW, centred, any transposition", "harmony", low=-1.0,
        features=("chroma",), chance=0.56, definition=2,
        description="The same, with the prediction rotated to the transposition that fits best.",
    ),
    _auxiliary(
        "tuning_cents", "Tuning difference", "harmony", low=-50.0, high=50.0, direction="zero", unit="cents",
        features=("chroma",), description="How much higher the prediction is tuned, whole semitones taken away.",
    ),
    _signed(
        "tempo_log2", "Tempo change, octaves folded", low=-0.5, high=0.5, definition=2,
        description="Change of tempo in octaves, whole octaves taken away; above 0 is faster.",
    ),
    _signed(
        "tempo_octave", "Tempo octaves", definition=2,
        description="The octaves that were taken away: 1 where twice as many beats are counted.",
    ),
    _auxiliary(
        "beat_f_measure_aligned", "Beat F-measure, aligned", "rhythm", features=("beats",), definition=3,
        description="Beat F-measure after one offset is taken away.",
    ),
    _auxiliary(
        "information_gain_aligned", "Information gain, aligned", "rhythm", features=("beats",), definition=3,
        description="Information gain after one offset is taken away.",
    ),
    _signed(
        "beat_offset_sec", "Beat offset, s", unit="s", definition=3,
        description="That offset in seconds, within a beat; above 0 the prediction is late.",
    ),
    _auxiliary(
        "swing_ratio", "Swing ratio", "rhythm", high=1.5, direction="lower", unit="octaves", features=("beats",)
    ),
    _auxiliary(
        "boundary_f_measure_3s", "Boundary F, 3 s", "structure", features=("segments",), chance=0.70, definition=2,
        description="Boundary F-measure with a window of 3 s.",
    ),
    _auxiliary("ssm_correlation", "SSM correlation", "structure", low=-1.0, features=("structure",), chance=0.10),
    _auxiliary(
        "voicing_false_alarm", "Voicing false alarm", "melody", direction="lower", features=("f0",), definition=2,
        description="Share of the reference's unvoiced frames that are voiced in the prediction.",
    ),
    _auxiliary("raw_pitch_accuracy", "Raw pitch accuracy", "melody", features=("f0",), chance=0.05, definition=2),
    _auxiliary(
        "raw_chroma_accuracy", "Raw chroma accuracy", "melody", features=("f0",), definition=2,
        description="Raw pitch accuracy, octaves ignored.",
    ),
    _auxiliary(
        "overall_accuracy", "Overall accuracy", "melody", features=("f0",), definition=2,
        description="Share of all frames that are right in voicing and pitch.",
    ),
    _auxiliary(
        "melody_contour_accuracy", "Melody contour accuracy", "melody", features=("f0",), chance=0.19, definition=2
    ),
    _auxiliary("interval_lcs", "Interval LCS", "melody", features=("melody",), chance=0.40, definition=2),
    _auxiliary("timbre_similarity", "Timbre similarity", "timbre", features=("bands",), chance=0.03),
)  # fmt: skip
"""Auxiliary metrics: reported beside the eleven, never mixed into them."""

SHOWN_AUXILIARY: Final = (
    "swing_ratio", "ssm_correlation", "raw_pitch_accuracy", "melody_contour_accuracy", "interval_lcs",
)  # fmt: skip
"""Auxiliary metrics that a run shows by default: the eleven hardly see which pitch sounds when, and form only as far as
sections are found. Each has a module of its own."""

_reached = functools.partial(Metric, facet="success", task="edits")  # what an edit was asked to change; our own

SUCCESS_SCORES: Final = block(
    _reached("edit_success", "Edit success", heading="success"),
    _reached("edit_done", "Targets done", heading="done", description="Share of the targets that are done."),
)
"""How much of what was asked of an edit is there. The original unchanged has 0, whatever it preserves."""

TEXT_SCORES: Final = block(
    _reached("text_audio_similarity", "Text-audio similarity", low=-1.0, paper="wu2023clap", heading="text similarity"),
    _reached("text_direction", "Text direction", low=-1.0),
    _reached("instruction_rank", "Instruction rank"),
    _reached("lpaps", "LPAPS", facet="nearness", high=16.0, direction="lower", paper="manor2024zeroshot"),
)
"""Edits by an encoder of texts and audio: how like the text that was asked for; and, of preservation, how near."""

# MuChin: structured lyrics in points, and descriptions by the similarity of their tags.
_MUCHIN: Final = "wang2024muchin"
_points = functools.partial(Metric, facet="lyrics", task="lyrics", paper=_MUCHIN, unit="points")

LYRIC_SCORES: Final = block(
    _points("lyric_structure", "Lyric structure", high=sum(MAXIMUM.values()), heading="Lyric structure, total"),
    _points("lyric_song", "Song", high=MAXIMUM["song"]),
    _points("lyric_section", "Section", high=MAXIMUM["section"]),
    _points("lyric_phrase", "Phrase", high=MAXIMUM["phrase"]),
    _points("lyric_word", "Word", high=MAXIMUM["word"]),
    _points("lyric_rhyme", "Rhyming fitting accuracy", high=MAXIMUM["rhyme"]),
    _points("lyric_reward", "Proportion reasonableness", high=MAXIMUM["reward"]),
    _points("lyric_structure_corrected", "Lyric structure, corrected", facet="lyrics, corrected", high=100.0, paper=""),
)
"""Points of structured lyrics: the total, then its levels, with the titles of MuChin's table 1; and the total of the
corrected variant, which stands beside them whatever the variant."""

_content = functools.partial(Metric, facet="lyrics, content", task="lyrics")

LYRIC_CONTENT: Final = block(
    _content("lyric_structure_gated", "Lyric structure, gated", facet="lyrics, corrected", high=100.0, unit="points"),
    _content("lyric_wordlikeness", "Lyric wordlikeness", direction="lower", high=WORDS_OF_PEOPLE[0]),
    _content("lyric_diversity", "Lyric diversity", direction="none", paper="li2016diversity"),
    _content("lyric_theme_similarity", "Lyric theme similarity", low=-1.0, paper="reimers2019sentence"),
)
"""What stands beside the form of lyrics: the corrected structure of those whose words are like people's, which orders
the leaderboard, and how far words are from people's; distinct bigrams by section; nearness to a theme by an encoder."""

_similarity = functools.partial(Metric, low=-1.0, task="descriptions", paper=_MUCHIN)

DESCRIPTION_SCORES: Final = block(
    _similarity("tag_semantic_similarity", "Tag semantic similarity", "average", heading="Both groups"),
    _similarity("professional_average", "Professional", "average"),
    _similarity("amateur_average", "Amateur", "average"),
    *(
        _similarity(f"{group}/{name}", DIMENSIONS[group][name].table_row, group)
        for group, names in SCORED.items()
        for name in names
    ),
)
"""Similarities of tags: averages, then each dimension of each group (MuChin, section 3.3)."""

# Style transfer: cells of piano rolls that a model predicts. All but the first are our own.
_cells = functools.partial(Metric, facet="cells", task="style-transfer", paper="lu2021actions")

CELL_SCORES: Final = block(
    _cells("piano_roll_error_rate", "Piano-roll error rate", direction="lower", heading="error rate"),
    _cells("change_error_rate", "Error rate at changes", direction="lower", heading="error at changes"),
    _cells("cell_precision", "Cell precision", heading="precision"),
    _cells("cell_recall", "Cell recall", heading="recall"),
    _cells("cell_f1", "Cell F1", heading="F1"),
    _cells("cell_nll", "Cell NLL", high=_INF, direction="lower", unit="nats a cell", heading="NLL"),
)
"""Scores of predicted cells: the published error rate, and what has to stand beside it."""

HIDDEN_CELL_SCORES: Final = block(
    *(
        dataclasses.replace(
            metric, name=f"{name}_hidden_{steps}", title=f"{metric.title}, {steps} steps hidden",
            facet=f"cells, {steps} steps hidden", heading=f"{metric.heading}, {steps} hidden",
        )
        for steps in (8, 32)
        for name, metric in CELL_SCORES.items()
    )
)  # fmt: skip
"""The same with so many steps on either side hidden, a quarter note or a bar: what copies a neighbour fails here."""

# Style transfers themselves; our own.
_style = functools.partial(Metric, facet="style", task="style-transfer")
_unlike = functools.partial(_style, high=_LN2, direction="lower", unit="nats", kind="set")

STYLE_SCORES: Final = block(
    _unlike("style_pitch_class_divergence", "Pitch classes of a bar", heading="pitch-class div."),
    _unlike("style_interval_divergence", "Intervals above the lowest pitch", heading="interval div."),
    _unlike("style_groove_divergence", "Grooves of neighbouring bars", heading="groove div."),
    _unlike("style_onset_divergence", "Position of onsets in the beat", heading="onset div."),
    _unlike("style_duration_divergence", "Note lengths", heading="length div."),
    _unlike("style_density_divergence", "Pitches at once", heading="density div."),
    _unlike("style_register_divergence", "Registers", heading="register div."),
    _style("style_probability", "Probability of the target style", heading="p(target)"),
    _style("style_accuracy", "Stretches given to the target style", heading="given to target"),
)
"""How like the target corpus a set of pieces is: divergences of histograms, and a classifier of two corpora."""

MELODY_SCORES: Final = block(
    _style("melody_cell_recall", "Melody cells kept", facet="melody kept", heading="melody cells"),
    _style("melody_onset_recall", "Melody onsets kept", facet="melody kept", heading="melody onsets"),
)
"""What a style transfer keeps of the melody that it was given."""

# The editing test: what editors and listeners say of two models, pair by pair.
_effort = functools.partial(
    Metric, facet="effort", high=_INF, direction="lower", task="editing-test", paper="lu2021actions"
)
_answer = functools.partial(Metric, facet="answers", low=-4.0, high=4.0, task="editing-test", paper="lu2021actions")

EFFORT_RATIOS: Final = block(
    _effort("time_effort_ratio", "Ratio of editing times", heading="time ratio"),
    _effort("keyboard_effort_ratio", "Ratio of key presses", heading="keyboard ratio"),
    _effort("mouse_effort_ratio", "Ratio of mouse clicks", heading="mouse ratio"),
)
"""Work that a model makes for editors, of what the baseline makes; below 1 favours the model."""

EDITING_SCORES: Final = block(
    _answer("delta_eq1", "Easier to edit", heading="ΔEQ1"),
    _answer("delta_eq2", "Sounds better after the edit", heading="ΔEQ2"),
    _answer("delta_eq3", "Benefits a production more", heading="ΔEQ3"),
    _answer("delta_lq1", "Sounds better to listeners", heading="ΔLQ1"),
)
"""By how much answers for a model, 1 to 5, are higher than for the baseline; above 0 favours the model."""

CATALOGUE: Final[Mapping[str, Metric]] = MappingProxyType(
    {
        **INPAINTING_METRICS, **INPAINTING_EXTENSIONS, **LIKELIHOODS,
        **PRESERVATION_METRICS, **RELEASE_SCORES, **AUXILIARY, **SUCCESS_SCORES, **TEXT_SCORES,
        **LYRIC_SCORES, **LYRIC_CONTENT, **DESCRIPTION_SCORES,
        **CELL_SCORES, **HIDDEN_CELL_SCORES, **STYLE_SCORES, **MELODY_SCORES, **EFFORT_RATIOS, **EDITING_SCORES,
    }
)  # fmt: skip
"""All blocks together."""


def metric_of(name: str) -> Metric:
    """Return what the catalogue says of a score.

    Raises
    ------
    UnknownNameError
        A score that does not exist; names the nearest.
    """
    if name not in CATALOGUE:
        raise UnknownNameError("metric", name, CATALOGUE)
    return CATALOGUE[name]


def select_names(
    names: Iterable[str] | None, known: Collection[str], kind: str, default: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return the names that are asked for, in the order of `known`."""
    wanted = tuple(default) if names is None else (names,) if isinstance(names, str) else tuple(names)
    for name in wanted:
        if name not in known:
            raise UnknownNameError(kind, name, known)
    return tuple(name for name in known if name in wanted)


def features_of(name: str, variant: str = "corrected") -> tuple[str, ...]:
    """Return the features that a metric needs, see `Metric.features_under`.

    Raises
    ------
    UnknownNameError
        A metric or variant that does not exist.
    """
    check_variant(variant, PRESERVATION_VARIANTS)
    return metric_of(name).features_under(variant)


if not TYPE_CHECKING:
    __getattr__ = module_getattr(__name__, {"COMPANIONS": "AUXILIARY", "SHOWN_COMPANIONS": "SHOWN_AUXILIARY"})
