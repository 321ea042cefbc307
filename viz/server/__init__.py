"""The server: its routes, headers, bounds and refusals. `python -m viz.server` starts it."""
