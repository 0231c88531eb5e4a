"""What a survey says while reports come in, as a page."""
