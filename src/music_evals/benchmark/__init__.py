"""Tasks, runner, records and reports."""

from music_evals.deprecation import moved_modules

_TASKS = {
    "edits": "sources task work",
    "inpainting": "items plots predictions report runner systems task",
    "musecpbench": "findings tables task",
    "preservation": "controls facets pairs players plots report screen task worker",
    "songs": "descriptions discrepancy generations lyric_scoring lyric_writing lyrics nonsense songs tag_predictions "
    "text_controls writing_log",
    "style_transfer": "systems task",
}
_TASK_MODULES = [f"{task}.{name}" for task, names in _TASKS.items() for name in names.split()]
_PREPARATION = (
    "clusters contract embeddings evidence job lead_sheet phonemes programs refinement stems steps sung task themes"
)

moved_modules(
    "music_evals",
    {
        **{f"benchmark.{name}": f"benchmark.tasks.{name}" for name in (*_TASKS, *_TASK_MODULES)},
        "benchmark.preparation": "preparation",
        **{f"benchmark.preparation.{name}": f"preparation.{name}" for name in _PREPARATION.split()},
        "benchmark.inpainting.listening": "studies.listening.inpainting",
        "benchmark.edits.listening": "studies.listening.edits",
        "benchmark.listening": "studies.listening.agreement",
        "benchmark.listening_study": "studies.listening",
        "benchmark.listening_study.analysis": "studies.listening.analysis",
        "benchmark.listening_study.plan": "studies.listening.simulation",
        "benchmark.listening_study.report": "studies.listening.report",
        "benchmark.editing_study": "studies.editing",
        "benchmark.editing_study.figures": "studies.editing.figures",
        "benchmark.editing_study.mixed": "studies.editing.mixed_model",
        "benchmark.editing_study.plan": "studies.editing.simulation",
        "benchmark.editing_study.report": "studies.editing.report",
        **{f"benchmark.{name}": "benchmark.inputs" for name in ("manifests", "model_folders", "sources")},
        "benchmark.cells": "benchmark.formats",
        "benchmark.outputs": "benchmark.run",
    },
)
