"""The build: list the raw files, make the parts that are missing, check them, publish them."""
