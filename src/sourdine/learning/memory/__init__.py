"""How much memory training needs, measured before it is begun."""
