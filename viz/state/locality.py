"""Whether a request comes from this computer itself, and not through a proxy that runs on it.

Such a visitor may open folders and models of the hub without a setting, and may read `/metrics`.
"""

import threading
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from model.system.addresses import is_loopback
from model.system.settings import Settings, settings_of

# Headers that a proxy adds, besides those that begin so: each maker of proxies has names of its own.
FORWARDED = {"forwarded", "via", "client-ip", "true-client-ip", "cdn-loop"}
FORWARDED_BEGIN = ("x-", "cf-", "fly-", "fastly-", "tailscale-", "akamai-")
# What scripts of a page and Prometheus send themselves.
OWN = {"x-requested-with", "x-xsrftoken", "x-prometheus-scrape-timeout-seconds"}


def is_local(peer: str | None, headers: Iterable[tuple[str, str]]) -> bool:
    """Whether a request came from this computer, was addressed to one of its names, and has no header of a
    proxy.

    peer: the address at the other end of the connection.
    """
    hosts = []
    for name, value in ((name.lower(), value) for name, value in headers):
        if name in FORWARDED or (name.startswith(FORWARDED_BEGIN) and name not in OWN):
            return False
        if name == "host":
            hosts.append(value)
    return peer is not None and _is_loopback_ip(peer) and all(map(_is_local_host, hosts))


def visitor_is_local() -> bool:
    """`is_local` of the visitor whose page this thread draws. True where there is no connection: in a thread
    that draws no page, and for a page that a script draws (`AppTest` has a stand-in for the runtime)."""
    run = get_script_run_ctx(suppress_warning=True)
    if run is None or not runtime.exists() or type(runtime.get_instance()) is not runtime.Runtime:
        return True
    client = runtime.get_instance().get_client(run.session_id)
    context = None if client is None else client.client_context
    if context is None:  # has left meanwhile
        return False
    return is_local(context.remote_ip, context.headers)


class _PageRun(threading.local):
    """The run of a page that this thread draws. What it holds goes with the thread, or with its next run."""

    run: object = None
    held: dict[object, Any]


_thread = _PageRun()


def held_by_this_run() -> dict[object, Any]:
    """What the run of a page that this thread draws holds until it ends; nothing is held in a thread that
    draws no page."""
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:
        return {}
    if context.cursors is not _thread.run:  # made anew for each run
        _thread.run, _thread.held = context.cursors, {}
    return _thread.held


def settings_of_this_run() -> Settings:
    """The settings for the visitor whose page this thread draws. A page asks for them some forty times, so
    they are read once in its run; in a thread that draws no page, each time. Raises ValueError as `read`."""
    held = held_by_this_run()
    if Settings not in held:
        held[Settings] = settings_of(asked_here=visitor_is_local())
    settings: Settings = held[Settings]
    return settings


def _is_loopback_ip(peer: str) -> bool:
    try:
        return ip_address(peer).is_loopback
    except ValueError:
        return False


def _is_local_host(host: str) -> bool:
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:  # no host can have this name
        return False
