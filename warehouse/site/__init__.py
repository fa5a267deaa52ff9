"""The site: a folder of HTML pages on tables, columns, lineage, queries and formats, which needs no server."""
