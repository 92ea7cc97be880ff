"""Large parts go to an object store; the queue gets turns, lanes and deadlines; equal content is found again."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add what is new; nothing that is there changes its meaning."""
    op.add_column("parts", sa.Column("stored", sa.Boolean, nullable=False, server_default=sa.false()))
    op.create_table(
        "blobs",
        sa.Column("tenant", sa.String(64), primary_key=True),
        sa.Column("sha256", sa.LargeBinary, primary_key=True),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("holders", sa.Integer, nullable=False),
    )
    op.create_table(
        "spare_blobs",
        sa.Column("name", sa.String(255), primary_key=True),
        sa.Column("tenant", sa.String(64), nullable=False),
        sa.Column("sha256", sa.LargeBinary, nullable=False),
        sa.Column("due_time", sa.BigInteger, nullable=False),
    )
    op.create_index("spare_blobs_by_due", "spare_blobs", ["due_time"])
    op.add_column("analyses", sa.Column("turn", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("analyses", sa.Column("lane", sa.Integer, nullable=False, server_default="0"))
    op.add_column("analyses", sa.Column("deadline", sa.BigInteger))
    op.add_column("analyses", sa.Column("content_key", sa.LargeBinary))
    op.create_index("analyses_by_turn", "analyses", ["state", "tenant", "turn"])
    op.create_index("analyses_by_content", "analyses", ["tenant", "content_key"])
