"""Tables of a warehouse in a PostgreSQL server, for the tools that speak to one: docs/postgresql.md."""
