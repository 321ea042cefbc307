"""What the page of the prediction draws."""
