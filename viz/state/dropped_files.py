"""The trace files that were dropped in this session: nobody else reads them by their names."""

import streamlit as st
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile

from model.trace.dropped import FORGOTTEN, is_dropped

_DROPPED = "dropped-files"  # session state: a file's name by content -> its name where it came from


def note_dropped(name: str, called: str) -> None:
    """Notes that this session holds a file. called: the name that it has there."""
    st.session_state[_DROPPED] = _dropped() | {name: called}


def let_go(file: UploadedFile) -> None:
    """Frees the memory of a file as it was sent, which Streamlit keeps until the session ends."""
    run = get_script_run_ctx(suppress_warning=True)
    if run is not None and isinstance(run.uploaded_file_mgr, MemoryUploadedFileManager):
        run.uploaded_file_mgr.remove_file(run.session_id, file.file_id)


def called(name: str) -> str:
    """What a file of this session is called where it came from; "" for any other."""
    return _dropped().get(name, "")


def own_files() -> tuple[str, ...]:
    """The names of this session's files."""
    return tuple(_dropped())


def is_ours(name: str) -> bool:
    """Whether this session may read what has such a name. A thread that draws no page works for one that
    was allowed to."""
    if not is_dropped(name) or get_script_run_ctx(suppress_warning=True) is None:
        return True
    return name in _dropped()


def require_ours(name: str) -> None:
    """Raises ValueError for a file that was dropped in another session."""
    if not is_ours(name):
        raise ValueError(FORGOTTEN)


def _dropped() -> dict[str, str]:
    dropped: dict[str, str] = st.session_state.get(_DROPPED, {})
    return dropped
