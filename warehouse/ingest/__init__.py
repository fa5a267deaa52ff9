"""Raw files as relations of `raw`: list data folders, unpack archives, repair CSV files, read tables."""
