"""What the page of the layer norm draws."""
