"""What statistics are read off: how far a unit moves it, what the engine sums, its noise."""
