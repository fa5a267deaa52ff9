"""Log families."""
