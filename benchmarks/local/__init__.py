"""Frequency oracles side by side with pure-ldp and multi-freq-ldpy."""
