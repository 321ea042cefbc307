"""The app as an ASGI application: loads the default model at the start, says when it is ready, counts
requests, and puts the checks of `viz.server.security` before Streamlit."""

import asyncio
import functools
import gc
import importlib
import pkgutil
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qsl

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import cli_util
from streamlit.web.server import server_util

from model.system import allocator
from model.system.machine import machine_bytes
from viz import views
from viz.elements.error_boundary import tell
from viz.explorer.assets import PLOTLY, PLOTLY_ADDRESS
from viz.explorer.bundle import BUNDLED, SCRIPTS
from viz.explorer.layer import forget_gone
from viz.server.connections import InPieces, descriptors, reap_slow_readers
from viz.server.files_on_request import make_files_in_turn
from viz.server.owner import owner
from viz.server.security import web_security
from viz.shell.downloads import entry_to_fetch, fetch_behind, prepare
from viz.shell.streamlit_patches import mend_streamlit
from viz.state.engine import engine
from viz.state.link import address
from viz.state.moved import new_address
from viz.state.presets import FIRST
from viz.state.quota import page_runs
from viz.telemetry import logs
from viz.telemetry.metrics import Counting, metrics

APP = Path(__file__).parents[2] / "app.py"
# Python's own 5 ms let the server's loop wait for a page at each of its steps.
SECONDS_OF_A_THREAD = 0.0005
ROOMY = 8_000_000_000  # bytes of a computer's memory, from which a model is loaded that nobody has opened yet
SECONDS_BETWEEN_TRIMS = 5.0  # passes meanwhile use the memory again
A_YEAR = ", ".join(("public", "max-age=31536000", "immutable"))  # the address changes with the file


async def ready(_: Request) -> Response:
    """200 once the default model is loaded, 503 until then."""
    if engine().has(FIRST.model):
        return PlainTextResponse("ready")
    return PlainTextResponse("loading", status_code=503)


async def plotly_script(_: Request) -> Response:
    """Plotly for the explorer, straight from the installed package."""
    script = await asyncio.to_thread(_plotly)
    page_runs.note_drawing()
    return Response(script, media_type="text/javascript", headers={"cache-control": A_YEAR})


async def component_script(request: Request) -> Response:
    """The script of one of our components."""
    scripts, name = await asyncio.to_thread(_scripts), request.path_params["name"]
    if name not in scripts:
        return PlainTextResponse("not found", status_code=404)
    headers = {"cache-control": A_YEAR}
    return Response(scripts[name], media_type="text/javascript", headers=headers)


@functools.cache
def _scripts() -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in BUNDLED.glob("*.js")}


@functools.cache
def _plotly() -> bytes:
    """Read once: a file is read anew for each reader, in steps that take their turns with the pages."""
    return PLOTLY.read_bytes()


def preload() -> None:
    """Sends for the model that the owner wants fetched, loads all that visitors would wait for, and then that
    model. One comes after the other: two threads that import one library can wait for each other for ever. So
    a page waits for torch before it imports anything (viz/shell/frame.py), but for the first one, which needs
    none of it: torch would take half of its time."""
    importlib.import_module("viz.views.home.opening")
    page_runs.let_first_pass()
    importlib.import_module("torch")
    loaded = threading.Event()
    entry = entry_to_fetch()
    if entry is not None:
        fetch_behind(entry, once=loaded)
    try:
        _load()
        if entry is not None:
            importlib.import_module("model.hub.loading")  # takes seconds
    finally:
        gc.enable()
        loaded.set()
    if entry is not None and machine_bytes() >= ROOMY:
        prepare(entry)


def _load() -> None:
    """Loads the default model, and then the code of all pages. Where the model is refused, the page says
    so."""
    began = time.monotonic()
    try:
        engine().model(FIRST.model, lambda sentence, share: None)
    except ValueError as error:  # it holds no visitor's text: there are none yet
        logs.event("not ready", model=FIRST.model, reason=str(error))
    else:
        logs.event("ready", seconds=round(time.monotonic() - began, 1))
    for module in pkgutil.walk_packages(views.__path__, f"{views.__name__}."):
        page_runs.let_pass()
        importlib.import_module(module.name)


def open_browser(opens: str = "") -> None:
    """Opens the app in the browser of this computer. opens: what stands in the address behind the first
    slash."""
    address = server_util.get_url(st.get_option("browser.serverAddress"))
    cli_util.open_browser(f"{address.rstrip('/')}/{opens}")


async def tend_memory() -> None:
    """Returns memory that is not used any more to the system every few seconds, until it is cancelled."""
    while True:
        await asyncio.sleep(SECONDS_BETWEEN_TRIMS)
        await asyncio.to_thread(lambda: engine().give_back())
        await asyncio.to_thread(forget_gone)


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    sys.setswitchinterval(SECONDS_OF_A_THREAD)
    allocator.reuse()
    mend_streamlit()
    make_files_in_turn()
    logs.set_up()  # from here on what breaks is a line of the log
    logs.event(
        "start",
        address=st.get_option("server.address"),
        port=st.get_option("server.port"),
        descriptors=descriptors(),
    )
    tending = [asyncio.create_task(work) for work in (reap_slow_readers(), tend_memory())]
    threading.Thread(target=preload, name="preload", daemon=True).start()
    if not st.get_option("server.headless"):  # the socket listens already
        threading.Thread(
            target=open_browser, args=sys.argv[1:2], name="browser", daemon=True
        ).start()
    yield
    for task in tending:
        task.cancel()
    logs.event("stop", lines_kept_back=logs.kept_back())


class MovedViews:
    """Sends a browser that asks for a view of an earlier version to where it is now: Back then leads to what
    was open before."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self.app
        if scope["type"] == "http":
            base = st.get_option("server.baseUrlPath").strip("/")
            path = scope["path"].strip("/").removeprefix(base).strip("/")
            said = dict(parse_qsl(scope["query_string"].decode("latin-1")))
            if b"text/html" in dict(scope["headers"]).get(b"accept", b""):
                page_runs.note_asked()
            if (new := new_address(path, said)) is not None:
                path, parameters = new
                app = RedirectResponse(
                    address("/".join(("", *filter(None, (base, path)))) or "/", parameters), 307
                )
        await app(scope, receive, send)


ROUTES = [
    Route("/readyz", ready),
    Route("/metrics", metrics),
    Route("/owner", owner),
    Route(f"/{PLOTLY_ADDRESS}", plotly_script),
    Route(f"/{SCRIPTS}/{{name}}", component_script),
]
app = st.App(
    APP,
    routes=ROUTES,
    middleware=[
        Middleware(Counting),
        Middleware(InPieces),
        *web_security(),
        Middleware(MovedViews),
    ],
    lifespan=lifespan,
    on_script_error=tell,
)
