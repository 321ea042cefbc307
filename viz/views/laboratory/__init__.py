"""What the laboratory draws: the changes, how to make them, and their effects."""
