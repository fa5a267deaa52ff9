"""A project's files: models and their contracts, macros, checks, reference tables."""
