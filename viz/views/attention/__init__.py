"""What the page "Attention" draws: one head step by step, its scores and its edges taken apart."""
