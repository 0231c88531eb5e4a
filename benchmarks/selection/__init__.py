"""Coverage of the rows that HAVING and ORDER BY ... LIMIT show."""
