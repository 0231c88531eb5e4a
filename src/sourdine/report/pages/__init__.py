"""Pages that need nothing but themselves."""
