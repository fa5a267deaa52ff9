"""`warehouse sql` without a query: a read-only shell."""
