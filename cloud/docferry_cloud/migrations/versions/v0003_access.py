"""Keys, what tenants handed in by day, and the audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the tables; the service stays as open as it was until a key is issued."""
    op.create_table(
        "keys",
        sa.Column("key_id", sa.String(16), primary_key=True),
        sa.Column("tenant", sa.String(64), nullable=False),
        sa.Column("device", sa.String(64), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("scopes", sa.String(64), nullable=False),
        sa.Column("secret_sha256", sa.LargeBinary, nullable=False),
        sa.Column("create_time", sa.BigInteger, nullable=False),
        sa.Column("expire_time", sa.BigInteger),
        sa.Column("revoke_time", sa.BigInteger),
        sa.Column("last_use", sa.BigInteger),
    )
    op.create_index("keys_by_tenant", "keys", ["tenant", "create_time"])
    op.create_table(
        "usage",
        sa.Column("tenant", sa.String(64), primary_key=True),
        sa.Column("day", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("documents", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "audit",
        sa.Column("sequence", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("time", sa.BigInteger, nullable=False),
        sa.Column("tenant", sa.String(64), nullable=False),
        sa.Column("who", sa.String(130), nullable=False),
        sa.Column("rpc", sa.String(64), nullable=False),
        sa.Column("analysis_id", sa.String(64), nullable=False),
        sa.Column("outcome", sa.String(32), nullable=False),
        sa.Column("peer", sa.String(64), nullable=False),
    )
    op.create_index("audit_by_time", "audit", ["time"])
    op.create_index("audit_by_tenant", "audit", ["tenant", "time"])
