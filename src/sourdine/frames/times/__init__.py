"""Dates and times: how they are declared, written and read, on the clock of any zone."""
