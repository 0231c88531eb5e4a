"""Examples to learn from, and how batches of them are drawn."""
