"""Amplification by shuffling: shuffled epochs, and reports whose senders are forgotten."""
