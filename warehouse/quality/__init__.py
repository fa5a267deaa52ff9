"""The quality of models: unit tests, the reproducibility lint, what each model costs."""
