"""One-time links by which a document is handed to somebody without a key."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the table; nothing was handed out before."""
    op.create_table(
        "claims",
        sa.Column("claim_id", sa.String(16), primary_key=True),
        sa.Column("tenant", sa.String(64), nullable=False),
        sa.Column("device", sa.String(64), nullable=False),
        sa.Column(
            "analysis_id", sa.String(36), sa.ForeignKey("analyses.analysis_id", ondelete="CASCADE"), nullable=False
        ),
        sa.Column("link_sha256", sa.LargeBinary, nullable=False),
        sa.Column("session_sha256", sa.LargeBinary),
        sa.Column("create_time", sa.BigInteger, nullable=False),
        sa.Column("expire_time", sa.BigInteger, nullable=False),
        sa.Column("session_until", sa.BigInteger),
        sa.Column("revoke_time", sa.BigInteger),
    )
    op.create_index("claims_by_analysis", "claims", ["analysis_id"])
