"""`python -m viz.server`, which `make run` starts. It runs Streamlit's command line, so that variables
such as STREAMLIT_SERVER_PORT count."""

import sys

from streamlit.web import cli

from model.system.settings import check_at_start
from viz.server.connections import bound_the_server, raise_limit
from viz.server.ending import end_in_time
from viz.server.starting import starting

with starting():
    check_at_start()
    from viz.server import asgi  # reads the settings: not before they are checked

    raise_limit()
    bound_the_server()
    end_in_time()
    cli.main(["run", asgi.__file__, *sys.argv[1:]], prog_name="streamlit", standalone_mode=False)
