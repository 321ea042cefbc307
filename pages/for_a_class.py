"""For a class: exercises with other numbers for each pupil."""

from viz.shell import page
from viz.views.for_a_class.exercises import exercises

page.open_page("pages/for_a_class.py")
seen = page.look()
page.views({"Exercises": exercises}, seen)
