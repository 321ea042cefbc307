"""Exercises for a class: numbers of the open model to calculate with by hand, with answers and working."""
