"""What the page of shapes and cost draws."""
