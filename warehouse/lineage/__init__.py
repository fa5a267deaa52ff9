"""Lineage of tables and columns, by the SQL of the models."""
