"""Accounts of a provider by which people sign in, and sign-ins that have begun."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the two tables."""
    op.create_table(
        "identity",
        sa.Column("provider", sa.String(length=200), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("person", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["person.id"]),
        sa.PrimaryKeyConstraint("provider", "subject"),
        sa.UniqueConstraint("person", "provider", name="identity_once"),
    )
    op.create_table(
        "attempt",
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("purpose", sa.String(length=10), nullable=False),
        sa.Column("session", sa.String(length=64), nullable=False),
        sa.Column("invite", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("consent", sa.String(length=40), nullable=False),
        sa.Column("expires", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("secret_hash"),
    )


def downgrade() -> None:
    """Remove them; people without a password cannot sign in any more."""
    op.drop_table("attempt")
    op.drop_table("identity")
