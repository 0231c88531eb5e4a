"""Audits of one run, beside jax_privacy."""
