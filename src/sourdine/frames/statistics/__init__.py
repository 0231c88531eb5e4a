"""What an engine computes exactly of its records: sums, totals, ranks, partitions and what does not fit."""
