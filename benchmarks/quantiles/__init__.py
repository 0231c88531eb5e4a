"""Private deciles of an array, beside a plain sort and beside peers."""
