"""For a class: a lesson and exercises."""
