"""What is asked for sums: DuckDB and Spark, the SQL that each speaks, and the types it reads."""
