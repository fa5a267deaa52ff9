"""The version of this package, that of `pyproject.toml`."""

__version__ = "0.1.0"
