"""k, l and t of a table, and a table made coarser, beside peers."""
