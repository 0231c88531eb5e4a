"""Random plans of every kind of query, replayed on neighbouring tables of every engine."""
