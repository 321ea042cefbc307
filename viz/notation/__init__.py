"""How a quantity, a number, a token and a layer are written. Pure functions."""
