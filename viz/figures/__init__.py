"""Pictures: pure functions from arrays to a Plotly figure."""
