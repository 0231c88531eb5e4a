"""Oracles of categories."""
