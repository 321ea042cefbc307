"""Questions asked of traces: pure functions."""
