"""For a class: a lesson, exercises and one link for all."""
