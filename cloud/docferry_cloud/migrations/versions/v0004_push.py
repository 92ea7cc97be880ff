"""Subscribers of several kinds, keys that are exchanged, and deliveries that are kept once they were given up."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the columns; what was a subscription before is a webhook to all events."""
    for column in (
        _text("kind", 16, "WEBHOOK"),
        _text("old_secret", 128),
        _count("old_secret_until"),
        _text("language", 8, "en"),
        _text("analysis_id", 36),
        _text("document_id", 36),
        _count("delivered_time"),
    ):
        op.add_column("subscriptions", column)
    for column in (_count("create_time"), _text("failure", 255), _count("dead_time")):
        op.add_column("deliveries", column)
    op.drop_index("deliveries_by_due", "deliveries")
    op.create_index("deliveries_by_due", "deliveries", ["dead_time", "due_time"])


def _text(name: str, length: int, default: str = "") -> sa.Column[str]:
    return sa.Column(name, sa.String(length), nullable=False, server_default=default)


def _count(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, server_default="0")
