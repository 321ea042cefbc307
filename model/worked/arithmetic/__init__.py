"""The arithmetic of the worked examples: small pure functions on float64 arrays, each written once."""
