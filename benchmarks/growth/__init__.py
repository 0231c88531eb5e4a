"""How the cost of a release grows with rows and with keys, on DuckDB, Polars and Spark, with memory."""
