"""Music on the page: notes, grids, measures, encodings and files.

`notes` and `measures` are the ground: structured arrays, quantisation, bars. `files` reads and writes MIDI, MusicXML
and ABC, and batches that may hold broken files. `noteseq`, `factorized` and `remi` are encodings, each an
encode/decode pair; `contexts` goes from a score to the tokens of a context; `time_grid` quantises performed MIDI.
`frame` lists what a folder of MIDI files holds, and `filters` cleans it.
"""
