"""How well data fits what is declared: told privately, or exactly to its holder alone."""
