"""Pictures: one a file, pure functions from arrays to a Plotly figure."""
