"""How a run goes, told on public examples and written down."""
