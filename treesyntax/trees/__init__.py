"""Functions from trees to trees."""
