"""Where a score, an output or a prediction comes from: sums that can be checked."""
