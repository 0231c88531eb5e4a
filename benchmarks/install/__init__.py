"""What an installation brings, in megabytes and seconds, beside peers."""
