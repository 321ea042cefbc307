"""Where Streamlit does not suit an app for many visitors: all patches, in one file."""

import asyncio
import hashlib
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st
from streamlit import runtime
from streamlit.components.v2 import manifest_scanner
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime import app_session, media_file_manager, memory_media_file_storage
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.media_file_manager import MediaFileManager, MediaFileMetadata
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner import script_runner
from streamlit.runtime.scriptrunner.script_runner import ScriptRunnerEvent
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequestType
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext
from streamlit.runtime.session_manager import SessionInfo

from model.system.clicks import clicked
from viz.state.quota import page_runs
from viz.state.way_back import way_back

TOGETHER = 0.005  # seconds for which what a run draws is collected before it is sent
TO_FETCH = 10.0  # seconds for which a file is kept that no page shows any more
COLLECTED = (ScriptRunnerEvent.SCRIPT_STARTED, ScriptRunnerEvent.ENQUEUE_FORWARD_MSG)


def mend_streamlit() -> None:
    """Applies all patches. A second call changes nothing."""
    around_every_page()
    if getattr(AppSession, "_on_scriptrunner_event", None) is _take_event:
        return
    name_files_by_their_content()
    keep_files_of_buttons()
    watch_nothing()
    take_turns()
    begin_with_the_whole_page()
    clear_with_what_is_inside()
    send_together()
    forget_who_left()


def around_every_page() -> None:
    """From now on app.py runs first, whatever page is asked for. Streamlit takes a folder named `pages`
    for a sign that each of its files runs by itself, until it meets `st.navigation`."""
    PagesManager.uses_pages_directory = False


def look_for_no_components() -> None:
    """Before the server starts. Streamlit reads the description of every package that is installed, to find
    components in it: with 200 packages 0.25 s, and the app has its own components only."""
    setattr(manifest_scanner, "scan_component_manifests", list)  # noqa: B010


def name_files_by_their_content() -> None:
    """A file to download is named by all of its bytes. Streamlit names one of more than a megabyte by its
    length and three samples: two visitors' pictures that differ elsewhere would be one file, the first's."""
    setattr(memory_media_file_storage, "_calculate_file_id", file_name)  # noqa: B010


def file_name(content: bytes, kind: str, name: str | None = None) -> str:
    """A name that only files of the same content, kind and name share, as far as SHA-256 tells."""
    digest = hashlib.sha256(content)
    digest.update(repr((len(content), kind, name)).encode())
    return digest.hexdigest()


def keep_files_of_buttons() -> None:
    """A press on a button that saves a file finds it, also while the page runs anew.

    Streamlit forgets what a page shows when a run begins, and at the end of anybody's run drops what is
    forgotten. A file that is made on request gets another name in each run, and nothing holds it until the
    browser fetches it.
    """
    if hasattr(media_file_manager.MediaFileMetadata, "_may_go"):
        return  # also where it was another import of this file
    setattr(media_file_manager, "MediaFileMetadata", _FileToFetch)  # noqa: B010
    setattr(MediaFileManager, "clear_session_refs", _forget_files)  # noqa: B010
    setattr(MediaFileManager, "add_deferred", _add_file_on_request)  # noqa: B010


class _FileToFetch(MediaFileMetadata):
    """Of a file that may be dropped only some seconds after no page shows it any more."""

    _may_go = 0.0

    def mark_for_delete(self) -> None:
        if not self._is_marked_for_delete:
            self._may_go = time.monotonic() + TO_FETCH
        super().mark_for_delete()

    @property
    def is_marked_for_delete(self) -> bool:
        return super().is_marked_for_delete and time.monotonic() >= self._may_go


def _shown_before(session_id: str) -> str:
    """The name under which a session's files are held that stand on the page from before its run."""
    return f"before {session_id}"


def _forget_files(manager: MediaFileManager, session_id: str | None = None) -> None:
    """A session has ended. Without its name a run of it begins, and its page still shows what it showed."""
    files = manager._files_by_session_and_coord
    with manager._lock:
        if session_id is None:
            session_id = media_file_manager._get_session_id()
            files[_shown_before(session_id)] |= files.pop(session_id, {})
        else:
            for name in (session_id, _shown_before(session_id)):
                files.pop(name, None)


def _add_file_on_request(
    manager: MediaFileManager,
    data_callable: Callable[[], Any],
    mimetype: str | None,
    coordinates: str,
    file_name: str | None = None,
    *,
    element_id: str = "",
) -> str:
    """The name of the file, which a button keeps for as long as it is on the page."""
    session_id = media_file_manager._get_session_id()
    with manager._lock:
        made, known = manager._deferred_callables, manager._deferred_ids_by_session[session_id]
        same = (name for name in known if element_id and made[name]["element_id"] == element_id)
        name = next(same, None) or uuid.uuid4().hex
        made[name] = {
            "callable": data_callable,
            "mimetype": mimetype,
            "filename": file_name,
            "coordinates": coordinates,
            "session_id": session_id,
            "element_id": element_id,
        }
        known.add(name)
        manager._files_by_session_and_coord[session_id][coordinates] = name
    return name


def watch_nothing() -> None:
    """Where the settings want no file watched, watches none after a lost connection either.

    Streamlit registers its watchers anew when a session comes back, and they walk every module of torch on
    the event loop: nobody is answered for seconds.
    """
    if st.get_option("server.fileWatcherType") == "none":
        setattr(AppSession, "register_file_watchers", lambda session: None)  # noqa: B010


class _InTurn(script_runner.ScriptRunner):
    """Runs a page when it is its visitor's turn.

    It also follows Back and Forward when a later request overtook theirs, and stays on the page that was
    asked for when a part of the page before still sends a request.
    """

    def __init__(self, *, session_id: str, initial_rerun_data: RerunData, **others: Any) -> None:
        request = way_back.marked(session_id, initial_rerun_data)
        super().__init__(session_id=session_id, initial_rerun_data=request, **others)

    def request_rerun(self, rerun_data: RerunData) -> bool:
        request = of_the_page_asked_for(self._requests._rerun_data, rerun_data)
        waiting = self._requests._rerun_data
        leads_away = request.page_script_hash not in ("", waiting.page_script_hash)
        if leads_away and self._requests._state is ScriptRequestType.RERUN:
            request = with_what_was_chosen(waiting, request)
        return super().request_rerun(way_back.marked(self._session_id, request))

    def _run_script(self, rerun_data: RerunData) -> None:
        with clicked(), page_runs.turn(self._session_id):
            super()._run_script(rerun_data)

    def _on_script_finished(
        self, ctx: ScriptRunContext, event: ScriptRunnerEvent, *how: Any, **more: Any
    ) -> None:
        """The browser clears away what the run has not drawn, unless it was stopped for another one."""
        if event is ScriptRunnerEvent.SCRIPT_STOPPED_WITH_SUCCESS and ctx.has_script_started:
            runtime.get_instance().media_file_mgr.clear_session_refs(
                _shown_before(self._session_id)
            )
        super()._on_script_finished(ctx, event, *how, **more)


def of_the_page_asked_for(last: RerunData, request: RerunData) -> RerunData:
    """The request of a part of a page, with the address of the last request.

    The browser names the page that it shows. A picture may report something a moment after a click on a link;
    it then names the page that the reader is leaving, and Streamlit would go back there.
    """
    if not request.fragment_id or last.page_script_hash in ("", request.page_script_hash):
        return request
    address = ("page_script_hash", "page_name", "query_string")
    return replace(request, **{name: getattr(last, name) for name in address})


def with_what_was_chosen(waiting: RerunData, request: RerunData) -> RerunData:
    """The request, with what the one that still waits says of parts that this one does not name.

    A click on a link names only the parts of the frame. Of a choice made just before in a picture of the page
    that is left, Streamlit would keep nothing but the clicks of buttons.
    """
    told = WidgetStates()
    if request.widget_states is not None:
        told.CopyFrom(request.widget_states)
    named = {state.id for state in told.widgets}
    before = () if waiting.widget_states is None else waiting.widget_states.widgets
    told.widgets.extend(state for state in before if state.id not in named)
    return replace(request, widget_states=told)


def take_turns() -> None:
    """Visitors' pages run in turn. Streamlit runs all at once, so that a few visitors who never pause keep
    all others waiting."""
    setattr(app_session, "ScriptRunner", _InTurn)  # noqa: B010


def begin_with_the_whole_page() -> None:
    """A session begins with the whole page. Where a server was started anew, a part of an open page asks for
    itself; Streamlit knows no such part and answers nothing."""
    if hasattr(AppSession, _ASK):
        return
    setattr(AppSession, _ASK, AppSession.request_rerun)
    setattr(AppSession, "request_rerun", _ask)  # noqa: B010


def _ask(session: AppSession, client_state: ClientState | None) -> None:
    if client_state is not None and not session._fragment_storage.registration_sequence():
        client_state.ClearField("fragment_id")
    getattr(session, _ASK)(client_state)


def clear_with_what_is_inside() -> None:
    """Where a part of the page is drawn anew, what waits to be sent of the parts inside it is dropped too.

    Streamlit drops what stands beside them and sends them: the browser then finds no place for them, and
    shows nothing more.
    """
    setattr(AppSession, "_clear_queue", _clear_queue)  # noqa: B010


def _clear_queue(session: AppSession, fragment_ids_this_run: list[str] | None = None) -> None:
    queue, drawn = session._browser_queue, fragment_ids_this_run
    if drawn is not None:
        waiting = {message.delta.fragment_id for message in queue._queue}
        has_ancestor = session._fragment_storage.has_ancestor_in
        drawn = [*drawn, *(one for one in waiting if one and has_ancestor(one, set(drawn)))]
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=drawn)


_ASK = "_request_rerun_of_streamlit"
_WAKE = (
    "_wake_event_loop"  # Streamlit's own method, kept on its class: this file may be imported again
)
_lock = threading.Lock()


def send_together() -> None:
    """Passes a run's messages to the event loop in groups, in their order.

    Streamlit wakes the loop for each message, and the run waits meanwhile, because Python runs one thread at
    a time. Only one import of this file may patch it, because each import has its own lock.
    """
    if hasattr(AppSession, _WAKE):
        return
    setattr(AppSession, _WAKE, AppSession._call_soon_on_event_loop)
    setattr(AppSession, "_call_soon_on_event_loop", say)  # noqa: B010
    setattr(AppSession, "_on_scriptrunner_event", _take_event)  # noqa: B010


def _take_event(
    session: AppSession,
    sender: script_runner.ScriptRunner | None,
    event: ScriptRunnerEvent,
    forward_msg: ForwardMsg | None = None,
    **more: Any,
) -> None:
    handle = session._handle_scriptrunner_event_on_event_loop
    callback = partial(handle, sender, event, forward_msg, **more)
    say(session, callback, after=TOGETHER if event in COLLECTED else 0)


def say(session: AppSession, callback: Callable[[], None], *, after: float = 0) -> None:
    """Has a session's event loop call this, after all earlier calls. after: seconds that it may wait for
    more."""
    said: deque[Callable[[], None]] = vars(session).setdefault("said", deque())
    with _lock:
        said.append(callback)
        is_first = len(said) == 1
    wake = getattr(AppSession, _WAKE)
    if not after:
        wake(session, partial(_hear, said))
    elif is_first:
        wake(session, lambda: _hear_later(after, said))


def _hear_later(seconds: float, said: deque[Callable[[], None]]) -> None:
    asyncio.get_running_loop().call_later(seconds, _hear, said)


def _hear(said: deque[Callable[[], None]]) -> None:
    loop = asyncio.get_running_loop()
    with _lock:
        for callback in said:
            loop.call_soon(callback)  # each by itself: one that fails leaves the others alone
        said.clear()


def forget_who_left() -> None:
    """The session of a visitor who left ends after `server.disconnectedSessionTTL` seconds. Streamlit keeps
    it, with all that the last page holds, until another visitor leaves after that."""
    setattr(MemorySessionStorage, "save", _keep_for_a_while)  # noqa: B010


def _keep_for_a_while(storage: MemorySessionStorage, left: SessionInfo) -> None:
    sessions: Any = storage._cache  # Streamlit's own, with a time to live
    sessions[left.session.id] = left
    asyncio.get_running_loop().call_later(sessions.ttl, _end_sessions, sessions)


def _end_sessions(sessions: Any) -> None:
    """Ends those whose time is over. Streamlit's loop may refer to the last one until somebody comes, so each
    is emptied too."""
    for _, left in sessions.expire():
        left.session.shutdown()
        left.session.session_state.clear()
        left.session._fragment_storage.clear()
