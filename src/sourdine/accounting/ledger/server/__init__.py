"""A ledger on a PostgreSQL server."""
