"""Many settings tried, and paid once."""
