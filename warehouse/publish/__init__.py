"""A published warehouse for readers elsewhere: files, PostgreSQL, OpenLineage."""
