"""What the page "All heads" draws: which head to look at, what it writes, what it is needed for."""
