"""Cells of one record in SQL: numbers in steps, and what is computed of those within their bounds."""
