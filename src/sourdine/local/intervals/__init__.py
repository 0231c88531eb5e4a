"""Exact intervals for how many people hold a category."""
