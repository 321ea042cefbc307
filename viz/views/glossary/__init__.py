"""Terms, and links to them."""
