"""From data folders to the relations of `raw`: list the files, unpack, repair, read."""
