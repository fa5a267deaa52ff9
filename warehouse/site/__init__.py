"""The site: static HTML pages on tables, columns, lineage, queries and formats; needs no server."""
