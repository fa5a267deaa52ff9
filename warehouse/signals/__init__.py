"""Analysis of traffic as signals: which servers pulse together, and how long an iteration takes.

Used by the Python models of traffic (`models/metrics/traffic_*.py`). Knows arrays, no tables, files or servers' names.
Sums are of integers below 2^53, so results do not depend on the number of threads.
"""
