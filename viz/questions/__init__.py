"""Questions to answer before the page shows the numbers; each answer is computed from the live model."""
