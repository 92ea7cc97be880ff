"""The steps of the schema: they end where the tables of the code are, from wherever a database comes."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from docferry.errors import ConfigurationError
from docferry_cloud import schema
from docferry_cloud.database import Database
from docferry_cloud.event_log import EventLog


@pytest.fixture
def place(tmp_path, database_url):
    return database_url() or tmp_path / "store.sqlite"


@pytest.fixture
def database(place):
    made = Database(place)
    yield made
    made.close()


def test_the_steps_end_at_the_tables_of_the_code(database):
    database.create()
    with database.read() as connection:
        found = compare_metadata(MigrationContext.configure(connection), schema.metadata)
        ours = [change for change in found if not (change[0] == "remove_table" and change[1].schema == "dbos")]
        assert ours == []


def test_a_database_from_before_there_were_steps_is_taken_over_with_what_it_holds(database):
    database._dialect.prepare()
    with database.write() as connection:
        # The first release of all had neither wants nor any number of its state.
        schema.facts.create(connection)
        schema.events.create(connection)
        for later in ("pages_done", "pages"):
            connection.execute(sa.text(f"ALTER TABLE events DROP COLUMN {later}"))
        connection.execute(schema.facts.insert().values(name="log_id", value="kept"))
    database.create()
    assert EventLog(database).open() == "kept"


def test_processes_that_begin_at_once_take_turns(place):
    databases = [Database(place) for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(Database.create, databases))
    for database in databases:
        database.close()


def test_a_database_that_a_newer_release_has_used_is_refused(database):
    database.create()
    with database.write() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(ConfigurationError, match="newer"):
        database.create()


def test_a_server_that_is_away_is_named_without_its_password(tmp_path):
    database = Database(f"postgresql://docferry:hush@/docferry?host={tmp_path}")
    with pytest.raises(ConfigurationError) as failure:
        database.create()
    assert "hush" not in str(failure.value)
    database.close()


def test_another_kind_of_database_is_refused_without_its_password():
    with pytest.raises(ConfigurationError) as failure:
        Database("mysql://docferry:hush@host/name")
    assert "hush" not in str(failure.value)
