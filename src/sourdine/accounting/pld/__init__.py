"""Privacy loss distributions, composed between certified bounds."""
