"""What each step of the page shows."""
