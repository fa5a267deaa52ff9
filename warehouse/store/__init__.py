"""Files of a target: parts, manifest, lock, file signatures, caches; all written atomically."""
