"""What Streamlit does otherwise than an app for many visitors needs, mended in one place."""

import hashlib
from typing import Any

import streamlit as st
from streamlit.runtime import app_session, memory_media_file_storage
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner import script_runner
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData

from viz.state.page_runs import page_runs
from viz.state.way_back import way_back


def mend_streamlit() -> None:
    """Makes all mends; a second time changes nothing."""
    around_every_page()
    name_files_by_their_content()
    watch_nothing()
    take_turns()


def around_every_page() -> None:
    """From now on app.py runs first, whatever page is asked for. Streamlit takes a folder named `pages`
    for a sign that each of its files runs by itself, until it meets `st.navigation`."""
    PagesManager.uses_pages_directory = False


def name_files_by_their_content() -> None:
    """A file to download is named by all of its bytes. Streamlit names one of more than a megabyte by its
    length and three samples: two visitors' pictures that differ elsewhere would be one file, the first's."""
    setattr(memory_media_file_storage, "_calculate_file_id", file_name)  # noqa: B010


def file_name(content: bytes, kind: str, name: str | None = None) -> str:
    """A name that only files of the same content, kind and name share, as far as SHA-256 tells."""
    digest = hashlib.sha256(content)
    digest.update(repr((len(content), kind, name)).encode())
    return digest.hexdigest()


def watch_nothing() -> None:
    """Where the settings want no file watched, a session that comes back after a lost connection watches none
    either. Streamlit registers its watchers anew then, and they walk every module of torch on the event loop:
    nobody is answered for seconds."""
    if st.get_option("server.fileWatcherType") == "none":
        setattr(AppSession, "register_file_watchers", lambda session: None)  # noqa: B010


class _InTurn(script_runner.ScriptRunner):
    """Runs a page when its visitor's turn has come, and knows Back and Forward though the request that said
    so was overtaken."""

    def __init__(self, *, session_id: str, initial_rerun_data: RerunData, **others: Any) -> None:
        request = way_back.marked(session_id, initial_rerun_data)
        super().__init__(session_id=session_id, initial_rerun_data=request, **others)

    def request_rerun(self, rerun_data: RerunData) -> bool:
        return super().request_rerun(way_back.marked(self._session_id, rerun_data))

    def _run_script(self, rerun_data: RerunData) -> None:
        with page_runs.turn(self._session_id):
            super()._run_script(rerun_data)


def take_turns() -> None:
    """Visitors take turns with their pages. Streamlit runs all at once, so that a few who ask without a pause
    keep everybody else waiting."""
    setattr(app_session, "ScriptRunner", _InTurn)  # noqa: B010
