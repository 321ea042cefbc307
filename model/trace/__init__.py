"""What one pass left behind, in numpy."""
