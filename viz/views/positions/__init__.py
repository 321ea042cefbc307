"""What the page of positions draws."""
