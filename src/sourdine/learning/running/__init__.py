"""A run of private training, from the payment to the model."""
