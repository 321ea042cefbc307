"""The command `attention-lens`; in this tree `python -m viz.command`."""
