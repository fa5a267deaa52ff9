"""Where tables and columns are from: `tables` reads the graph, `columns` follows a column, `walk` reads a SELECT."""
