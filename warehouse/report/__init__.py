"""The report: one HTML file about a warehouse, and its charts as files."""
