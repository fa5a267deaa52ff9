"""Dashboards of other tools on a published warehouse."""
