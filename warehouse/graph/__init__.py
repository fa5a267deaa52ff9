"""The DAG of models: what reads what, which parts there are, in which order, what names a part, why one is rebuilt."""
