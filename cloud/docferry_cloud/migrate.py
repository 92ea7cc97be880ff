"""Brings a database to the schema of this release, by the steps in `migrations/versions`."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from docferry.errors import ConfigurationError


def upgrade(connection: sa.Connection) -> None:
    """Take every step that is missing, within the caller's transaction.

    A database of the releases before there were steps has no version; the first step makes what it lacks.

    Raises:
        ConfigurationError: A newer release has been here.
    """
    config = configuration()
    script = ScriptDirectory.from_config(config)
    # Looked at here and not by the steps: a database that is up to date costs one query.
    reached = MigrationContext.configure(connection).get_current_revision()
    if reached == script.get_current_head():
        return
    if reached is not None and reached not in {step.revision for step in script.walk_revisions()}:
        raise ConfigurationError(
            f"the database is at step {reached}, which this release does not know: a newer one was here before",
            remedy="run the newer release, or restore a backup",
        )
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def reached(connection: sa.Connection) -> tuple[str | None, str]:
    """The step that a database is at, None for one without steps, and the newest that this release knows."""
    head = ScriptDirectory.from_config(configuration()).get_current_head()
    return MigrationContext.configure(connection).get_current_revision(), head or ""


def configuration() -> Config:
    """Alembic's configuration of our steps."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    config.set_main_option("path_separator", "os")
    return config
