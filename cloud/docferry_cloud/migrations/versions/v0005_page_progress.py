"""How far an engine has come with a document of many pages."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the counts; what is there has told nothing."""
    for table in ("analyses", "events"):
        op.add_column(table, sa.Column("pages_done", sa.Integer, nullable=False, server_default="0"))
        op.add_column(table, sa.Column("pages", sa.Integer, nullable=False, server_default="0"))
