"""Accountants: monoids over the laws of privacy losses."""
