"""`python -m viz.server`, which `make run` starts, with the options of Streamlit's command line."""

import sys

from model.system.commands import command
from viz.server.starting import run_server

with command("python -m viz.server"):
    run_server(sys.argv[1:])
