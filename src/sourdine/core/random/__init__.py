"""Random bits, and exact draws made of nothing else."""
