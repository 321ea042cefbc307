"""What a page is put together from: a plot, an error boundary."""
