"""What the page of tokens and embeddings draws."""
