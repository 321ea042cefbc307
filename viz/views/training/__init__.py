"""What the page on training draws."""
