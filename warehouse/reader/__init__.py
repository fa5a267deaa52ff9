"""Everything that reads a published warehouse, and changes nothing: queries, listings, citations, the shell."""
