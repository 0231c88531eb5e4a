"""Studio in a real browser: how quickly it paints, follows the slider and opens a large table."""
