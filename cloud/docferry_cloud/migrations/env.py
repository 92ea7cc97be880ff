"""Runs the steps on the connection that `docferry_cloud.migrate` hands over."""

from alembic import context

from docferry_cloud.schema import metadata

# One transaction around all steps: the caller's.
context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=False)
context.run_migrations()
