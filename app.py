"""The app: what stands on every page, and the page that is open."""

from viz.shell.frame import run_app

run_app()
