"""End-to-end tests with other programs on a published warehouse: `make e2e`."""
