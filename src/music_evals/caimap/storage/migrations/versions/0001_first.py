"""The first tables of a study, and the triggers that keep the audit log and the ledger as they were written."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_APPEND_ONLY = ("audit", "ledger")


def upgrade() -> None:
    """Make the tables, then their triggers."""
    _tables()
    if op.get_bind().dialect.name == "sqlite":
        for table in _APPEND_ONLY:
            for action in ("UPDATE", "DELETE"):
                op.execute(
                    f"CREATE TRIGGER {table}_no_{action.lower()} BEFORE {action} ON {table} "
                    f"BEGIN SELECT RAISE(ABORT, '{table} is never changed'); END"
                )
        return
    op.execute(
        "CREATE FUNCTION never_changed() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'never changed' USING ERRCODE = 'restrict_violation'; END $$"
    )
    for table in _APPEND_ONLY:
        op.execute(
            f"CREATE TRIGGER {table}_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION never_changed()"
        )


def _tables() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("moment", sa.DateTime(), nullable=False),
        sa.Column("person", sa.Integer(), nullable=True),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("object", sa.String(length=120), nullable=False),
        sa.Column("action", sa.String(length=30), nullable=False),
        sa.Column("before", sa.String(length=20), nullable=False),
        sa.Column("after", sa.String(length=20), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "person",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("password_hash", sa.String(length=200), nullable=False),
        sa.Column("language", sa.String(length=2), nullable=False),
        sa.Column("consent", sa.String(length=40), nullable=False),
        sa.Column("excluded", sa.Boolean(), nullable=False),
        sa.Column("withdrawn", sa.Boolean(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("locked_until", sa.DateTime(), nullable=True),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "setting",
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("value", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "song",
        sa.Column("id", sa.String(length=120), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("accepted", sa.JSON(), nullable=True),
        sa.Column("training", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_song_state"), "song", ["state"], unique=False)
    op.create_table(
        "invite",
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("expires", sa.DateTime(), nullable=False),
        sa.Column("used_by", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["used_by"], ["person.id"]),
        sa.PrimaryKeyConstraint("token_hash"),
    )
    op.create_table(
        "message",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("thread", sa.Integer(), nullable=False),
        sa.Column("author", sa.Integer(), nullable=False),
        sa.Column("content", sa.String(length=2000), nullable=False),
        sa.Column("place", sa.String(length=100), nullable=False),
        sa.Column("moment", sa.DateTime(), nullable=False),
        sa.ForeignKeyConstraint(["author"], ["person.id"]),
        sa.ForeignKeyConstraint(["thread"], ["person.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_message_thread"), "message", ["thread"], unique=False)
    op.create_table(
        "session",
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("person", sa.Integer(), nullable=False),
        sa.Column("csrf", sa.String(length=64), nullable=False),
        sa.Column("expires", sa.DateTime(), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["person.id"]),
        sa.PrimaryKeyConstraint("token_hash"),
    )
    op.create_index(op.f("ix_session_person"), "session", ["person"], unique=False)
    op.create_table(
        "task",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("song", sa.String(length=120), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("person", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("assigned", sa.DateTime(), nullable=False),
        sa.Column("opened", sa.DateTime(), nullable=True),
        sa.Column("submitted", sa.DateTime(), nullable=True),
        sa.Column("training", sa.Boolean(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("draft", sa.JSON(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.Column("agreement", sa.Double(), nullable=True),
        sa.Column("note", sa.String(length=1000), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["person.id"]),
        sa.ForeignKeyConstraint(["song"], ["song.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("song", "kind", "person", name="task_once"),
    )
    op.create_index(op.f("ix_task_person"), "task", ["person"], unique=False)
    op.create_index(op.f("ix_task_song"), "task", ["song"], unique=False)
    op.create_index(
        "task_place",
        "task",
        ["song", "kind", "number"],
        unique=True,
        sqlite_where=sa.text(
            "state IN ('accepted', 'assigned', 'sampled', 'screened', 'submitted', 'working') AND NOT training"
        ),
        postgresql_where=sa.text(
            "state IN ('accepted', 'assigned', 'sampled', 'screened', 'submitted', 'working') AND NOT training"
        ),
    )
    op.create_table(
        "week",
        sa.Column("person", sa.Integer(), nullable=False),
        sa.Column("monday", sa.String(length=10), nullable=False),
        sa.Column("grade_a", sa.String(length=3), nullable=False),
        sa.Column("grade_b", sa.String(length=3), nullable=False),
        sa.Column("excluded", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["person.id"]),
        sa.PrimaryKeyConstraint("person", "monday"),
    )
    op.create_table(
        "event",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("task", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("position_sec", sa.Double(), nullable=False),
        sa.Column("received_sec", sa.Double(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["task"], ["task.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_event_task"), "event", ["task"], unique=False)
    op.create_table(
        "ledger",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("person", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=12), nullable=False),
        sa.Column("cents", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(length=200), nullable=False),
        sa.Column("task", sa.Integer(), nullable=True),
        sa.Column("moment", sa.DateTime(), nullable=False),
        sa.CheckConstraint("reason <> ''", name="ledger_reason"),
        sa.ForeignKeyConstraint(["person"], ["person.id"]),
        sa.ForeignKeyConstraint(["task"], ["task.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_ledger_person"), "ledger", ["person"], unique=False)
    op.create_table(
        "sheet",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("task", sa.Integer(), nullable=False),
        sa.Column("inspector", sa.Integer(), nullable=False),
        sa.Column("purpose", sa.String(length=12), nullable=False),
        sa.Column("points", sa.JSON(), nullable=False),
        sa.Column("total", sa.Double(), nullable=False),
        sa.Column("remark", sa.String(length=1000), nullable=False),
        sa.Column("moment", sa.DateTime(), nullable=False),
        sa.ForeignKeyConstraint(["inspector"], ["person.id"]),
        sa.ForeignKeyConstraint(["task"], ["task.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("task", "inspector", "purpose", name="sheet_once"),
    )
    op.create_index(op.f("ix_sheet_task"), "sheet", ["task"], unique=False)
    op.create_table(
        "warning",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("person", sa.Integer(), nullable=False),
        sa.Column("task", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("moment", sa.DateTime(), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["person.id"]),
        sa.ForeignKeyConstraint(["task"], ["task.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_warning_person"), "warning", ["person"], unique=False)


def downgrade() -> None:
    """Remove the tables and all that they hold; triggers go with them."""
    op.drop_index(op.f("ix_warning_person"), table_name="warning")
    op.drop_table("warning")
    op.drop_index(op.f("ix_sheet_task"), table_name="sheet")
    op.drop_table("sheet")
    op.drop_index(op.f("ix_ledger_person"), table_name="ledger")
    op.drop_table("ledger")
    op.drop_index(op.f("ix_event_task"), table_name="event")
    op.drop_table("event")
    op.drop_table("week")
    op.drop_index(
        "task_place",
        table_name="task",
        sqlite_where=sa.text(
            "state IN ('accepted', 'assigned', 'sampled', 'screened', 'submitted', 'working') AND NOT training"
        ),
        postgresql_where=sa.text(
            "state IN ('accepted', 'assigned', 'sampled', 'screened', 'submitted', 'working') AND NOT training"
        ),
    )
    op.drop_index(op.f("ix_task_song"), table_name="task")
    op.drop_index(op.f("ix_task_person"), table_name="task")
    op.drop_table("task")
    op.drop_index(op.f("ix_session_person"), table_name="session")
    op.drop_table("session")
    op.drop_index(op.f("ix_message_thread"), table_name="message")
    op.drop_table("message")
    op.drop_table("invite")
    op.drop_index(op.f("ix_song_state"), table_name="song")
    op.drop_table("song")
    op.drop_table("setting")
    op.drop_table("person")
    op.drop_table("audit")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION never_changed()")
