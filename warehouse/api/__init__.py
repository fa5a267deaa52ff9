"""What people and programs hold: the class `Warehouse`, its answers and tables."""
