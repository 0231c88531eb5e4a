"""A head on kept features beside the same head behind a network that computes them again and again."""
