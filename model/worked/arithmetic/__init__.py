"""The arithmetic of the worked examples: pure functions on float64 arrays, each written once."""
