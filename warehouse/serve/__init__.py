"""Everything that reads a published warehouse: queries, listings, exports. Nothing here changes a target."""
