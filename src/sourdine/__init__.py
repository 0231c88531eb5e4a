"""Differential privacy that is stated, proven, audited and paid from a durable budget."""
