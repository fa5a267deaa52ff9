"""The DAG of models: what reads what, which parts there are and in which order, what names a part."""
