"""Publishing of tables to a PostgreSQL server: docs/postgresql.md."""
