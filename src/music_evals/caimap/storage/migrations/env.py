"""What alembic runs: the migrations of a study, on the connection that `storage.store.migrate` hands over."""

from __future__ import annotations

from alembic import context

from music_evals.caimap.storage.tables import Base

__all__: list[str] = []


def _run() -> None:
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=Base.metadata,
        render_as_batch=True,  # SQLite changes tables by copies
    )
    with context.begin_transaction():
        context.run_migrations()


if hasattr(context, "config"):  # alembic is at work; nobody only imports this module
    _run()
