"""The files of a target: parts, manifest, lock, file signatures, caches; written whole or not at all."""
