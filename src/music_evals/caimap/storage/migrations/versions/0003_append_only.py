"""Audit log and ledger are kept from what the first triggers let pass.

In SQLite a row that is replaced (INSERT OR REPLACE) is deleted without its trigger; in PostgreSQL a session that takes
itself for a replica runs no ordinary trigger.
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_APPEND_ONLY = ("audit", "ledger")


def upgrade() -> None:
    """Refuse rows with a number that is there; let the triggers of PostgreSQL run in every session."""
    for table in _APPEND_ONLY:
        if op.get_bind().dialect.name == "sqlite":
            op.execute(
                f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} "  # noqa: S608  (a table of ours)
                f"WHEN EXISTS (SELECT 1 FROM {table} WHERE id = NEW.id) "
                f"BEGIN SELECT RAISE(ABORT, '{table} is never changed'); END"
            )
        else:
            op.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_kept")


def downgrade() -> None:
    """Leave the first triggers alone."""
    for table in _APPEND_ONLY:
        if op.get_bind().dialect.name == "sqlite":
            op.execute(f"DROP TRIGGER {table}_no_replace")
        else:
            op.execute(f"ALTER TABLE {table} ENABLE TRIGGER {table}_kept")
