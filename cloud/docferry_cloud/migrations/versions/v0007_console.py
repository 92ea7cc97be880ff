"""What lists and figures need, beside the analyses, and sessions of people."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the tables. What is there is found by its names; what its versions say is known from its next one on."""
    op.create_table(
        "digests",
        sa.Column(
            "analysis_id",
            sa.String(36),
            sa.ForeignKey("analyses.analysis_id", ondelete="CASCADE"),
            primary_key=True,
            nullable=False,
        ),
        sa.Column("tenant", sa.String(64), nullable=False),
        sa.Column("device", sa.String(64), nullable=False),
        sa.Column("create_time", sa.BigInteger, nullable=False),
        sa.Column("names", sa.String(600), nullable=False),
        sa.Column("words", sa.String(2000), nullable=False, server_default=""),
        sa.Column("headline", sa.String(200), nullable=False, server_default=""),
        _count("pages", sa.Integer),
        _count("doubts", sa.Integer),
        _count("weight"),
        _count("route", sa.Integer),
        _count("risk", sa.Float),
        _count("original_bytes"),
        _count("sent_bytes"),
        _count("work_ms"),
    )
    op.execute(
        "INSERT INTO digests (analysis_id, tenant, device, create_time, names)"
        " SELECT analysis_id, tenant, device, create_time,"
        " lower(file_name || ' ' || device || ' ' || analysis_id || ' ' || document_id) FROM analyses"
    )
    op.create_index("digests_by_time", "digests", ["tenant", "create_time", "analysis_id"])
    op.create_index("digests_by_weight", "digests", ["tenant", "weight", "analysis_id"])
    op.create_table(
        "sessions",
        sa.Column("session_id", sa.String(16), primary_key=True),
        sa.Column("secret_sha256", sa.LargeBinary, nullable=False),
        sa.Column("holder", sa.String(64), nullable=False),
        sa.Column("create_time", sa.BigInteger, nullable=False),
        sa.Column("expire_time", sa.BigInteger, nullable=False),
    )
    op.create_index("sessions_by_expiry", "sessions", ["expire_time"])


def _count(name: str, kind: Any = sa.BigInteger) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False, server_default="0")
