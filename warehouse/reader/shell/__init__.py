"""Read-only shell: `warehouse sql` without a query."""
