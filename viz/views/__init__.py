"""What the pages show: one folder a page."""
