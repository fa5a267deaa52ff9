"""Compare two builds or exports: sides, tables that can differ, their rows, where a change came from."""
