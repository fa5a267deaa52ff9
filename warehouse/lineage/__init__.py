"""Lineage of tables and columns, from the SQL of the models."""
