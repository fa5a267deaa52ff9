"""The build: list the raw files, write the missing parts, check them, publish them."""
