"""`warehouse sql` without a query: a read-only shell.

What it does and says is in `session`, what can be completed in `completion`, the terminal in `prompt`.
"""
