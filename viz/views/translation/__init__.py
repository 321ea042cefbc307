"""What the page of the encoder–decoder draws."""
