"""What is counted and logged; never a visitor's text."""
