"""For a class: exercises."""
