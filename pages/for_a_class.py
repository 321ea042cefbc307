"""Teach: a lesson of 90 minutes, exercises with other numbers for each pupil, one link for all."""

from viz.shell import page
from viz.views.for_a_class.exercises import exercises
from viz.views.for_a_class.lesson import lesson
from viz.views.for_a_class.share import share

page.open_page("pages/for_a_class.py")
look = page.look()
page.views({"Lesson": lesson, "Exercises": exercises, "Share": share}, look)
