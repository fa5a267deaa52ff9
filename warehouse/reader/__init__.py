"""Read-only access to a published warehouse: queries, listings, citations and the shell."""
