"""Finished analyses that still wait for the full model."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the table; nothing waits yet."""
    op.create_table(
        "deepenings",
        sa.Column(
            "analysis_id",
            sa.String(36),
            sa.ForeignKey("analyses.analysis_id", ondelete="CASCADE"),
            primary_key=True,
            nullable=False,
        ),
        sa.Column("due_time", sa.BigInteger, nullable=False),
        sa.Column("owner", sa.String(64)),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
    )
    op.create_index("deepenings_by_due", "deepenings", ["due_time"])
