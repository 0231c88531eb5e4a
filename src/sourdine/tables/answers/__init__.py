"""What comes out: noise and its spread, values with intervals, and the tidy table of them."""
