"""Tables that add up: levels and margins, measured with noise, made into whole numbers that agree."""
