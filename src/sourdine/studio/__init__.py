"""Publish a table from a page in the browser, served by this machine to its user alone."""
