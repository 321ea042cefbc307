"""`python -m viz.server`, which `make run` starts, with the options of Streamlit's command line."""

import sys

from viz.server.starting import run_server

run_server(sys.argv[1:])
