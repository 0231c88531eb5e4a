"""Releases of tables, beside the same queries without privacy and beside peers."""
