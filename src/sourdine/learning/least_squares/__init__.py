"""Private least squares by noisy normal equations."""
