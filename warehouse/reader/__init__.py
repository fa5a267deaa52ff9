"""Everything that reads a published warehouse: queries, listings, citations, the shell.

Nothing here changes a target.
"""
