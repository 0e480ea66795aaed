"""Studies with people: what they hear, in one form for every task."""

from music_evals.deprecation import moved_modules

moved_modules(
    __name__,
    {
        "demo": "editing.study",
        "edit_logs": "editing.logs",
        "edit_marks": "editing.answers",
        "edit_publishing": "editing.publishing",
        "editing_answers": "editing.answers",
        "editing_design": "editing.study",
        "editing_study": "editing.study",
        "introductions": "folders",
        **{
            f"listening_{name}": f"listening.{name}" for name in ("answers", "build", "design", "results", "simulation")
        },
        "plausibility": "answers",
        "screening": "listening.screening",
        "simulation": "editing.simulation",
        "slots": "storage",
    },
)
moved_modules("music_evals", {"studies.tables": "pipelines.study_tables"})
