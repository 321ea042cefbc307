"""Examples: sentences worth opening, as cards with a small picture of the head."""
