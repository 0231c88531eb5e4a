"""Oracles of numbers."""
