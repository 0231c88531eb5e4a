"""What private training by noisy gradients costs."""
