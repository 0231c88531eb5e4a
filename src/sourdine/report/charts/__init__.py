"""Charts, as Vega-Lite draws them."""
