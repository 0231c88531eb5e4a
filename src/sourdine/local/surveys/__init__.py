"""Surveys by randomized response, and what they can ask."""
