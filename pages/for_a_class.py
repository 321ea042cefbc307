"""For a class: a lesson of 90 minutes, exercises with other numbers for each pupil, one link for all."""

from viz.shell import page
from viz.shell.panel import Panel
from viz.views.for_a_class.exercises import exercises
from viz.views.for_a_class.lesson import lesson, share

page.open_page("pages/for_a_class.py")
look = page.look()
page.views(
    {
        "Lesson": lambda look: Panel("lesson", picture=lesson),
        "Exercises": exercises,
        "Share": lambda look: Panel("share", picture=share),
    },
    look,
)
