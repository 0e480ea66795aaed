"""The old name of `music_evals.caimap.work.service`, for one release; `Desk` is `StudyService`."""

from music_evals.caimap.work.service import (
    Settings,
    StudyService,
    person_of,
    song_of,
    song_row,
    steady_clock,
    task_of,
    utc_now,
)
from music_evals.deprecation import module_getattr

__all__ = ["Settings", "StudyService", "person_of", "song_of", "song_row", "steady_clock", "task_of", "utc_now"]

__getattr__ = module_getattr(__name__, {"Desk": "StudyService"})
