"""`python -m viz.command`."""

from viz.command.command import main

main()
