"""What people corrected, found without looking through every version."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the index; versions of engines are not in it."""
    only = sa.text("engine = 'person'")
    op.create_index("versions_by_person", "versions", ["create_time"], sqlite_where=only, postgresql_where=only)
