"""Dashboards of other tools over a published warehouse."""
