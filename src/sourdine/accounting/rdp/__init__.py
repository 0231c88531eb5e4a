"""Renyi differential privacy."""
