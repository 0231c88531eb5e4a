"""Gradients of recurrent layers by example, step by step for all examples together."""
