"""Quality of models: unit tests, the reproducibility lint, profiling."""
