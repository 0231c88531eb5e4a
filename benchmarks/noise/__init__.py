"""How fast noise is drawn, and whether the time of a draw tells its size."""
