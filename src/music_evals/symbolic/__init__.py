"""Music on the page: notes, grids, measures, encodings and files.

`notes` and `measures` are the ground: structured arrays, quantisation, bars. `files` reads and writes MIDI, MusicXML
and ABC (by the readers in `reading`), and batches that may hold broken files; `tunes` replaces measures in a file (by
`rewriting`). `noteseq` and those in `encodings` are encodings, each an encode/decode pair; `contexts` goes from a score
to the tokens of a context. `frame` lists what a folder of MIDI files holds, and `filters` cleans it.
"""

from music_evals.deprecation import moved_modules

moved_modules(
    __name__,
    {
        **{name: f"encodings.{name}" for name in ("factorized", "items", "piano_rolls", "remi", "time_grid")},
        **{name: f"reading.{name}" for name in ("abc_bars", "abc_syntax", "midi_events", "written")},
        "abc_reading": "reading.abc",
        "abc_tunes": "rewriting.abc",
        "midi_names": "reading.midi_events",
        "midi_tunes": "rewriting.midi",
        "musicxml_reading": "reading.musicxml",
        "musicxml_tunes": "rewriting.musicxml",
        "note_values": "rewriting.note_values",
        "triads": "melody",
    },
)
