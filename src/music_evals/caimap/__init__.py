"""The annotation platform for descriptions and structures of songs: its rules, its storage, its pages."""

from music_evals.deprecation import moved_modules

_MOVED = {
    "domain": "assignment assurance consistency description grades ledger lexica listening machine simulation "
    "structure values",
    "exchange": "demo exporting importing prepared rows",
    "web": "waveforms",
}
moved_modules(
    __name__,
    {
        **{name: f"{folder}.{name}" for folder, names in _MOVED.items() for name in names.split()},
        "breaks": "domain.listening",
        "roles": "domain.machine",
        "superficial": "domain.grades",
        "training": "domain.assurance",
        "demo_work": "exchange.demo",
        "publishing": "exchange.exporting",
        "web.answering": "web.visitors",
        "web.hardening": "web.guards",
        "web.reporting": "exchange.reporting",
        "web.rerendering": "web.forms",
        "web.wording": "web.words",
        "work": "services",
        **{f"work.{name}": f"services.{name}" for name in ("accounts", "annotating", "identities", "inspecting")},
        **{f"work.{name}": f"services.{name}" for name in ("managing", "people", "views")},
        **{f"work.{name}": "services.study" for name in ("desk", "service")},
        **{f"work.{name}": "services.tasks" for name in ("hiding", "undoing")},
        **{f"work.{name}": "services.training" for name in ("lessons", "practising")},
        **{f"work.{name}": "services.oversight" for name in ("comparing", "watching")},
        "work.consents": "services.accounts",
        "work.settlements": "services.inspecting",
        "work.vocabulary": "services.managing",
        "work.weeks": "services.people",
    },
)
