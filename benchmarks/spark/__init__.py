"""What a release costs on Spark: jobs, shuffles and seconds beside the plain query, as rows grow."""
