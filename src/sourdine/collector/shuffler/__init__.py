"""A shuffler: takes reports as a collector does, and passes them on in batches, mixed, with nothing else."""
