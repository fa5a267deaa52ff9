"""A project's files: models and their contracts, macros, the check language, reference tables."""
