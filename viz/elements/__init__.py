"""What pages are put together from: choices, a plot, an error boundary."""
