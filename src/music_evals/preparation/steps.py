"""The steps of preparation: what each does with a song, by which source and licence, and how sure its answer is.

A step is a `contract.Step` in `STEPS`, and is added in a few lines::

    Step(
        "phonemes",
        source="...", licence="...", sure="...",
        does=find_phonemes,         # a function: Inputs -> answer
        needs=("audio", "lyrics"),  # files without which a song has no answer
        after=("alignment",),       # steps whose answers it needs; they are done before it, and asked for with it
        uses=("stems",),            # files and steps that are read where they are there
        columns=(Column("phonemes", [{"start_sec": "float64", "text": "string"}], {"phonemes": "..."}, "phonemes"),),
    )

The function gets `contract.Inputs`: ``inputs.files["audio"]`` is a path, ``inputs.answers["alignment"]["lines"]`` what
an earlier step answered, ``inputs.made("stems", "vocals")`` the path of a file that one made, or None, and
``inputs.options`` the settings that the step names in `options`. It returns plain values, and raises a named error
where a song has no answer: that song's step has failed, and the others go on. What it returns under a key of `files` is
bytes, and becomes a file.

Whatever it reads is hashed: bytes of files, answers of steps, the step's version, and what `about` says of its options
and tools. A run that is resumed does again what has changed, and nothing else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Final

from music_evals.annotations import LyricSection
from music_evals.annotations.lyrics import sections_of_text
from music_evals.audio.extraction import extract
from music_evals.audio.io import load_audio, load_channels
from music_evals.errors import InvalidLyricsError, NoDataError
from music_evals.lyrics.patterns import LEAST_CHINESE, chinese_share
from music_evals.lyrics.rhyme import rhyme_marks
from music_evals.preparation import clusters, embeddings, stems, sung, themes
from music_evals.preparation.contract import Column, CorpusStep, Described, Inputs, Song, Step
from music_evals.preparation.lead_sheet import FEATURES, make_lead_sheet
from music_evals.preparation.lyrics import read_lyrics, read_timed_lines

__all__ = [
    "CORPUS_STEPS",
    "STEPS",
    "Column",
    "Inputs",
    "Song",
    "Step",
    "StepWork",
    "all_steps",
    "in_waves",
    "with_earlier",
]


@dataclasses.dataclass(frozen=True)
class StepWork:
    """Do one step for one song; it can be pickled."""

    def __call__(self, payload: tuple[str, Inputs]) -> dict[str, Any]:
        """Return the answer for the name of a step and what it reads."""
        name, inputs = payload
        step = STEPS[name]
        for kind in step.needs:
            if kind not in inputs.files:
                raise NoDataError(f"song {inputs.song} has no {kind}, which the step {name} needs")
        for earlier in step.after:
            if earlier not in inputs.answers:
                raise NoDataError(f"song {inputs.song} has no {earlier}, which the step {name} needs: that step failed")
        return step.does(inputs)


def all_steps() -> dict[str, Described]:
    """Return all steps by name, those over all songs last."""
    return {**STEPS, **CORPUS_STEPS}


def with_earlier(names: Sequence[str]) -> list[str]:
    """Return these steps and those that they come after, in the order of `all_steps`."""
    steps = all_steps()
    chosen: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in chosen:
            chosen.add(name)
            left += steps[name].after
    return [name for name in steps if name in chosen]


def in_waves(names: Sequence[str]) -> list[list[str]]:
    """Return steps of songs in groups: all that those of one group read was made by groups before it."""
    waves: list[list[str]] = []
    place: dict[str, int] = {}
    for name in names:  # in the order of `STEPS`: what a step reads stands before it
        earlier = [place[other] for other in (*STEPS[name].after, *STEPS[name].uses) if other in place]
        place[name] = max(earlier, default=-1) + 1
        waves += [[]] if place[name] == len(waves) else []
        waves[place[name]].append(name)
    return waves


def _aligned(inputs: Inputs) -> dict[str, Any]:
    """Return the lines with the time stamps of an LRC file, none of them after the end of the recording."""
    duration_sec = None
    if "audio" in inputs.files:
        frames, rate = load_channels(inputs.files["audio"])
        duration_sec = len(frames) / rate
    return {"lines": [line._asdict() for line in read_timed_lines(inputs.files["lyrics"], duration_sec)]}


def _rhymed(inputs: Inputs) -> dict[str, Any]:
    """Return the lines of each section with a mark for those that rhyme."""
    path = inputs.files["lyrics"]
    text = read_lyrics(path)
    share = chinese_share(text)
    if share < LEAST_CHINESE:
        raise InvalidLyricsError(
            f"{path} is not Chinese: {share:.0%} of its letters are; rhymes are read in Chinese lyrics only"
        )
    whole = (LyricSection("song", tuple(text.splitlines())),)  # without headers the song is one section
    sections = sections_of_text(text) if text.startswith("(") else whole
    return {
        "sections": [
            {"section": section.label, "lines": list(section.lines), "rhymes": rhyme_marks(section.lines, "char")}
            for section in sections
        ]
    }


_SPAN: Final = dict.fromkeys(("start_sec", "end_sec"), "float64")


def _own(name: str, kind: Any, description: str) -> Column:
    """Return a column that holds what an answer has under its name."""
    return Column(name, kind, {name: description}, name)


STEPS: Final[dict[str, Step]] = {
    step.name: step
    for step in (
        Step(
            "alignment",
            source="time stamps of the LRC file",
            licence="that of the lyrics",
            sure="as the file says, moved by its [offset:]; of a recording the length alone was compared",
            does=_aligned,
            needs=("lyrics",),
            uses=("audio",),
            columns=(
                _own(
                    "lines",
                    [{"start_sec": "float64", "text": "string"}],
                    "lines with the time at which they begin, in seconds",
                ),
            ),
        ),
        Step(
            "rhymes",
            source="music_evals.lyrics.rhyme, method char",
            licence="MIT; the tables of pypinyin-dict: CC-CEDICT, CC BY-SA",
            sure="a program's marks, for people to check; a song without section headers is taken as one section",
            does=_rhymed,
            needs=("lyrics",),
            columns=(
                _own(
                    "sections",
                    [{"section": "string", "lines": ["string"], "rhymes": ["bool"]}],
                    "lines of each section, and for each whether it rhymes with another one of it",
                ),
            ),
        ),
        Step(
            "lead_sheet",
            source="the default backends of music_evals.audio for beats, chords and melody",
            licence="of each backend, in the records",
            sure="a draft: eighths at the finest, four beats a measure from the first beat on; off_grid says how "
            "well the notes fitted",
            # two files, and how well they fit the grid
            does=lambda inputs: dataclasses.asdict(
                make_lead_sheet(extract(load_audio(inputs.files["audio"]), FEATURES), inputs.song)
            ),
            needs=("audio",),
            files={"midi": "lead_sheets/{song}.mid", "musicxml": "lead_sheets/{song}.musicxml"},
            columns=(
                Column(
                    "lead_sheet",
                    {"midi": "string", "musicxml": "string", "bpm": "float64"}
                    | {"n_notes": "int64", "n_dropped": "int64", "off_grid": "float64"},
                    {
                        "lead_sheet.midi`, `lead_sheet.musicxml": "paths of the two files in this folder",
                        "lead_sheet.bpm": "beats a minute",
                        "lead_sheet.n_notes`, `lead_sheet.n_dropped": "notes written, and left out because another "
                        "one fell on their place",
                        "lead_sheet.off_grid": "mean distance of onsets from the grid in beats, 0 to 0.25",
                    },
                ),
            ),
        ),
        Step(
            "themes",
            source="the language model that the user named; each row names it, its state and the day",
            licence="of the model",
            sure="a draft of a language model; what is empty, too long, not Chinese, or copies a line is refused",
            does=themes.write_theme,
            needs=("lyrics",),
            columns=(
                Column(
                    "theme",
                    {"text": "string", "model": "string", "state": "string", "day": "string"},
                    {
                        "theme.text": "what the lyrics are about",
                        "theme.model`, `theme.state`, `theme.day": "who wrote it: model, its commit or the hash of "
                        "its files where that is known, and the day",
                    },
                    "theme",
                ),
            ),
            options=themes.OPTIONS,
            about=themes.about,
            left_out=themes.left_out,
        ),
        Step(
            "embeddings",
            source="the music encoder that the user named",
            licence="of the encoder: those of MERT and EnCodec are CC BY-NC 4.0, audio-statistics is Apache-2.0",
            sure="what the encoder hears; audio-statistics are means and deviations of timbre and pitch classes",
            does=embeddings.embed,
            needs=("audio",),
            files={"vector": "vectors/{song}.npy"},
            options=embeddings.OPTIONS,
            about=embeddings.about,
            left_out=embeddings.left_out,
        ),
        Step(
            "stems",
            source="demucs, the command that the user has, with --shifts 0",
            licence="demucs is MIT; its models were trained on MUSDB18-HQ and other songs",
            sure="separated by a network: other voices and instruments are heard in every stem",
            does=stems.separate,
            needs=("audio",),
            files=stems.FILES,
            columns=(
                Column(
                    "stems",
                    dict.fromkeys(stems.FILES, "string")
                    | {"duration_sec": "float64", "model": "string", "version": "string"},
                    {
                        "`, `".join(f"stems.{stem}" for stem in stems.FILES): "paths of the stems in this folder, FLAC",
                        "stems.duration_sec": "length of the recording",
                        "stems.model`, `stems.version": "model and version of demucs, where the version is known",
                    },
                ),
            ),
            options=stems.OPTIONS,
            about=stems.about,
            left_out=stems.left_out,
        ),
        Step(
            "phonemes",
            source="the Montreal Forced Aligner, models mandarin_mfa and mandarin_china_mfa, on the stem of the voice "
            "where there is one",
            licence="the aligner is MIT, its models are CC BY 4.0",
            sure="an aligner of speech: it takes notes of a melisma for other characters, and swallows breaths",
            does=sung.align,
            needs=("audio", "lyrics"),
            after=("alignment",),
            uses=("stems",),
            columns=(
                _own(
                    "aligned",
                    [{"text": "string", **_SPAN, "line": "int64"}],
                    "characters, or words of other languages, with their line, as the aligner has them",
                ),
                _own(
                    "phones",
                    [{"text": "string", **_SPAN, "character": "int64"}],
                    "phones, each with the place of its character in `aligned`",
                ),
            ),
            about=sung.about_phonemes,
            left_out=sung.phonemes_left_out,
        ),
        Step(
            "characters",
            source="music_evals.preparation.refinement, of the step phonemes or, without it, of a draft from "
            "the lines; heard in the stem of the voice or, without it, in the mixture",
            licence="MIT",
            sure="each has its confidence; of a draft from lines, or in a mixture, few are right: see "
            "benchmarks/lyric_alignment",
            does=sung.find,
            needs=("audio", "lyrics"),
            after=("alignment",),
            uses=("phonemes", "stems"),
            columns=(
                _own(
                    "characters",
                    [
                        {"text": "string", "line": "int64", **_SPAN, "confidence": "float64"}
                        | {"notes": [{**_SPAN, "pitch": "float64"}]}
                    ],
                    "characters where the voice shows them, with line, notes (several are a melisma) "
                    "and the probability that the beginning is right within 50 ms",
                ),
                _own("rests", [{**_SPAN, "kind": "string"}], "breaths and pauses between characters"),
                Column(
                    "characters_from",
                    {"first": "string", "heard": "string", "shift_sec": "float64"},
                    {
                        "characters_from.first": "what was refined: mfa or lines",
                        "characters_from.heard": "where: voice or mixture",
                        "characters_from.shift_sec": "by how much it was moved as a whole",
                    },
                    "origin",
                ),
            ),
            options=sung.OPTIONS,
            about=sung.about_characters,
            left_out=sung.draft_left_out,
        ),
    )
}
"""Name -> step; what a step reads of other steps stands before it."""

CORPUS_STEPS: Final[dict[str, CorpusStep]] = {
    "clusters": CorpusStep(
        "clusters",
        source="mini-batch k-means of scikit-learn over the embeddings, each dimension scaled to variance 1",
        licence="BSD-3-Clause",
        sure="as good as the encoder; other seeds give other clusters",
        after=("embeddings",),
        columns=(
            _own("cluster", "int64", "number of the song's cluster, 0 is the largest"),
            _own("cluster_distance", "float64", "from the cluster's centre, in standard deviations of a dimension"),
            _own("sampled", "bool", "whether the song is in the sample drawn evenly from clusters"),
        ),
        options=clusters.OPTIONS,
        about=clusters.about,
        left_out=clusters.left_out,
        does=clusters.cluster_songs,
    )
}
"""Name -> step over all songs."""
