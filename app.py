"""The app: what stands on every page, and the page that is open."""

from viz.shell.frame import open_app

open_app().run()
