"""Keys chosen privately: time and memory against how many keys there are."""
