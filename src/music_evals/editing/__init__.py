"""Editing systems: one file a system, behind `protocols.EditingSystem`.

None of them reads a file or falls back to another model. What all share stands once: checks, keys, seeds and the way
from a request to a result in `system`, length, rate and loudness in `alignment`, the loading of weights in
`conversion`, and the writing of instructions by templates in `instructions`. Systems are found by name in
`protocols.EDITORS`.
"""

from music_evals.deprecation import moved_modules

moved_modules(__name__, {"precision": "conversion", "samples": "audioldm2", "seeds": "system"})
