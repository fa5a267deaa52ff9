"""DAG of models: dependencies, selectors, the parts of a build and their fingerprints, reasons to rebuild."""
