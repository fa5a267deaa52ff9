"""A dashboard for Apache Superset: bi/superset/README.md."""
