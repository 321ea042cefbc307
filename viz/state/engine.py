"""The one engine of this process, shared by the server and every session."""

import threading
from collections.abc import Hashable
from functools import cache
from typing import Any

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from model.serving.engine import Engine, Event
from model.system.settings import listens_on, settings, settings_come_from
from viz.state.locality import settings_of_this_run
from viz.state.quota import page_runs
from viz.telemetry import logs, metrics

_ONE = threading.Lock()


def engine() -> Engine:
    """The engine, made at first use, when it is known where the server listens. The first two who ask at the
    same moment get the same one."""
    with _ONE:
        return _made()


def forget_engine() -> None:
    """The next who asks gets a new engine."""
    _made.cache_clear()


@cache
def _made() -> Engine:
    settings_come_from(settings_of_this_run)
    listens_on(st.get_option("server.address") or "0.0.0.0")  # Streamlit's "every address" is none
    how: dict[str, Any] = {
        "wanted": still_wanted,
        "visitor": visitor,
        "tell": _tell,
        "make_way": page_runs.let_pass,
    }
    address = settings().cluster
    made = Engine(**how) if address is None else _on_machines(address, how)
    metrics.watch(made)
    return made


def _on_machines(address: str, how: dict[str, Any]) -> Engine:
    from model.serving.cluster.cluster_engine import ClusterEngine  # torch: pages are drawn first

    return ClusterEngine(address, **how)


def visitor() -> str | None:
    """The session for which this thread draws a page; None in any other thread."""
    run = get_script_run_ctx(suppress_warning=True)
    return None if run is None else run.session_id


def is_present(visitor: Hashable) -> bool:
    """Whether this session has a page open."""
    return runtime.exists() and runtime.get_instance().is_active_session(str(visitor))


def still_wanted() -> None:
    """Ends the run of this thread where nobody waits for it any more: its visitor has left, or has
    clicked on something else. Does nothing in a thread that draws no page."""
    run = get_script_run_ctx(suppress_warning=True)
    if run is None:
        return
    if runtime.exists() and not is_present(run.session_id):
        st.stop()
    _ = "view" in st.session_state  # here Streamlit ends a run that is to begin anew


def _tell(event: Event) -> None:
    metrics.count(event)
    logs.note(event)
