"""Base of all packages: errors, settings, hashes, text helpers, lazy imports."""
