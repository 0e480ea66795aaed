"""Engines: where the units of a run are worked on. An engine changes no number, only how long it takes.

An engine takes units and a work, and yields each unit with its answer as it comes. It groups the units of one place:
the edits of one original meet in one process, which analyses the original once.

serial
    In this process, one after the other.
local
    In processes of their own, each of which takes one unit at a time. One that dies, in native code or for want of
    memory, or that hangs, costs its unit alone: the unit has failed, and a new process takes the next.
ray
    In such processes on all machines of a Ray cluster, or on this one; see `cluster`.
"""

from music_evals.benchmark.engines.cluster import check_address, on_ray
from music_evals.benchmark.engines.pool import local
from music_evals.benchmark.engines.process import THREADS
from music_evals.benchmark.engines.units import Answered, Answers, Failed, Unit, Work, answer, serial

__all__ = [
    "ENGINES", "THREADS", "Answered", "Answers", "Failed", "Unit", "Work", "answer", "check_address", "local", "on_ray",
    "serial",
]  # fmt: skip

ENGINES = {"serial": serial, "local": local, "ray": on_ray}
"""Name -> function that takes units, a work and ``workers``, and yields `Answered`."""
