"""The drawers of a cell on Explore: why its score is what it is, and what its edge carries."""
