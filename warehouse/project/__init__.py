"""Files of a project: models with contracts, macros, the check language, reference tables."""
