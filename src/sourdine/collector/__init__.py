"""A server that takes reports from phones and browsers, counts each once, and keeps nothing else."""
