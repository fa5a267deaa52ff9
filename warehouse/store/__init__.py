"""The files of a target: parts, manifest, lock, signatures of files, caches; written whole or not at all."""
