"""How many reports a second a collector takes, what storing costs, and that kills lose nothing."""
