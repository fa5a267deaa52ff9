"""Whole programs of others over a published warehouse; `make e2e`."""
