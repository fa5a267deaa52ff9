"""Where tables and columns are from: `tables` reads the graph, `walk` a SELECT, `columns` follows, `shown` prints."""
