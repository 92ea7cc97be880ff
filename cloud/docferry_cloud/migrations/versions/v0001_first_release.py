"""The tables of the first release, as they were before there were steps: what a database has of them stays."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make what is missing."""
    _analyses()
    _content()
    _wants()
    _events()
    _webhooks()
    _make("workers", _text("executor_id", 64, primary_key=True), _count("lease_until"))
    _make("facts", _text("name", 32, primary_key=True), sa.Column("value", sa.String(64)))


def _analyses() -> None:
    _make(
        "analyses",
        _text("analysis_id", 36, primary_key=True),
        _text("tenant", 64),
        _text("device", 64),
        _text("request_id", 36),
        _text("document_id", 36),
        _bytes("body_sha256"),
        _text("state", 16),
        _text("file_name", 255),
        _small("effort"),
        _bytes("route"),
        _bytes("traffic"),
        _small("version"),
        sa.Column("error", sa.LargeBinary),
        _count("create_time"),
        _count("update_time"),
        _count("expire_time"),
        sa.Column("owner", sa.String(64)),
        _small("attempts"),
        _count("lease_until"),
        sa.UniqueConstraint("tenant", "device", "request_id"),
    )
    _index("analyses_by_state", "analyses", "state", "lease_until")
    _index("analyses_by_time", "analyses", "tenant", "create_time", "analysis_id")
    _index("analyses_by_document", "analyses", "tenant", "document_id")
    _index("analyses_by_expiry", "analyses", "expire_time")
    _make(
        "tombstones",
        _text("tenant", 64, primary_key=True),
        _text("device", 64, primary_key=True),
        _text("request_id", 36, primary_key=True),
        _count("expire_time"),
    )
    _index("tombstones_by_expiry", "tombstones", "expire_time")


def _content() -> None:
    _make("envelopes", _of_analysis(), _bytes("body"))
    _make(
        "parts",
        _of_analysis(),
        _text("part_id", 64, primary_key=True),
        _small("position"),
        _bytes("announcement"),
        _count("size"),
        _bytes("sha256"),
        _count("received"),
    )
    of_part = sa.ForeignKeyConstraint(
        ["analysis_id", "part_id"], ["parts.analysis_id", "parts.part_id"], ondelete="CASCADE"
    )
    _make(
        "chunks",
        _text("analysis_id", 36, primary_key=True),
        _text("part_id", 64, primary_key=True),
        sa.Column("start", sa.BigInteger, primary_key=True),
        _bytes("data"),
        of_part,
    )
    _make(
        "versions",
        _of_analysis(),
        sa.Column("version", sa.Integer, primary_key=True),
        _text("engine", 64),
        _count("create_time"),
        _bytes("interpretation"),
    )


def _wants() -> None:
    _make(
        "wants",
        _serial("sequence"),
        _of_analysis(primary_key=False),
        _text("part_id", 64),
        _text("tenant", 64),
        _text("device", 64),
        _text("document_id", 36),
        _bytes("message"),
        _text("state", 16),
        sa.Column("refusal", sa.LargeBinary),
        sa.Column("blocking", sa.Boolean, nullable=False),
        _count("create_time"),
        _count("expire_time"),
        sa.UniqueConstraint("analysis_id", "part_id"),
        numbered=True,
    )
    _index("wants_by_device", "wants", "tenant", "device", "sequence")
    _index("wants_by_expiry", "wants", "state", "expire_time")


def _events() -> None:
    _make(
        "events",
        _serial("sequence"),
        _text("event_id", 36),
        _text("tenant", 64),
        _text("analysis_id", 36),
        _text("document_id", 36),
        _text("type", 16),
        _text("state", 16),
        _small("version"),
        _count("create_time"),
        numbered=True,
    )
    _index("events_by_tenant", "events", "tenant", "sequence")
    _index("events_by_analysis", "events", "analysis_id", "sequence")
    _index("events_by_time", "events", "create_time")


def _webhooks() -> None:
    _make(
        "subscriptions",
        _text("subscription_id", 36, primary_key=True),
        _text("tenant", 64),
        _text("url", 2048),
        _text("secret", 128),
        sa.Column("configured", sa.Boolean, nullable=False),
        _count("create_time"),
        _text("disabled_reason", 255),
        _count("lease_until"),
    )
    _index("subscriptions_by_tenant", "subscriptions", "tenant", "create_time")
    subscription = sa.ForeignKey("subscriptions.subscription_id", ondelete="CASCADE")
    _make(
        "deliveries",
        sa.Column("subscription_id", sa.String(36), subscription, primary_key=True),
        sa.Column("sequence", sa.BigInteger, primary_key=True),
        _text("event_id", 36),
        _small("attempts"),
        _count("due_time"),
        _bytes("body"),
    )
    _index("deliveries_by_due", "deliveries", "due_time")


def _make(name: str, *columns: sa.schema.SchemaItem, numbered: bool = False) -> None:
    op.create_table(name, *columns, if_not_exists=True, sqlite_autoincrement=numbered)


def _index(name: str, table: str, *columns: str) -> None:
    op.create_index(name, table, list(columns), if_not_exists=True)


def _text(name: str, length: int, *, primary_key: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(length), primary_key=primary_key, nullable=False)


def _bytes(name: str) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary, nullable=False)


def _count(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def _small(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False)


def _serial(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True)


def _of_analysis(*, primary_key: bool = True) -> sa.Column[str]:
    reference = sa.ForeignKey("analyses.analysis_id", ondelete="CASCADE")
    return sa.Column("analysis_id", sa.String(36), reference, primary_key=primary_key, nullable=False)
