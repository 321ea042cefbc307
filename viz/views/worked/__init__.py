"""What the page of the worked examples draws."""
