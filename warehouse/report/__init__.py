"""The report: one HTML file on what a warehouse holds, and its charts as files."""
