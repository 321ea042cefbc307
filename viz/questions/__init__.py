"""Questions to answer before the page shows the numbers. Each answer is computed by the open model."""
