"""A growing table: errors of correlated noise against peers, a year day by day, and kills."""
