"""Steps of private training, beside Opacus and plain training."""
