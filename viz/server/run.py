"""Starts the server by Streamlit's command line, so that variables such as STREAMLIT_SERVER_PORT count."""

from collections.abc import Sequence

from streamlit.web import cli

from model.system.settings import check_at_start
from viz.server.connections import bound_the_server, raise_limit
from viz.server.ending import end_in_time
from viz.server.starting import starting


def run_server(options: Sequence[str] = (), opens: str = "") -> None:
    """Serves the app until a signal ends it.

    options: of Streamlit's command line. opens: what the browser shows first, where there is a display: what
    stands in the app's address behind the first slash.
    """
    with starting():
        check_at_start()
        from viz.server import asgi  # reads the settings: not before they are checked

        raise_limit()
        bound_the_server()
        end_in_time()
        line = ["run", asgi.__file__, *options, "--", opens]
        cli.main(line, prog_name="streamlit", standalone_mode=False)
