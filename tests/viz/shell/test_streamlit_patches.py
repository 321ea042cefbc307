"""What is mended in Streamlit, each held against Streamlit's own classes."""

import asyncio
import gc
import importlib.metadata
import importlib.util
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner
from streamlit.components.v2.component_manager import BidiComponentManager
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime import Runtime, app_session, media_file_manager, memory_media_file_storage
from streamlit.runtime.app_session import AppSession, _populate_config_msg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.fragment import MemoryFragmentStorage
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.media_file_storage import MediaFileKind, MediaFileStorageError
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.script_data import ScriptData
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.runtime.scriptrunner.script_runner import ScriptRunnerEvent
from streamlit.runtime.scriptrunner_utils.exceptions import RerunException
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData
from streamlit.runtime.state import SessionState
from streamlit.runtime.websocket_session_manager import WebsocketSessionManager

from model import Intervention, load_model
from model.trace.trace import Trace
from viz.saving.offline_page import head_picture, picture_figures, standalone
from viz.shell import streamlit_patches
from viz.shell.streamlit_patches import mend_streamlit, say

WORDS = (
    "the cat saw the dog and the cat ran to the river and the dog sat on the mat with a red ball "
)
EDGES = [(149, key) for key in range(3, 43)]


@pytest.fixture(scope="module", autouse=True)
def mended() -> Iterator[None]:
    changed = [
        (PagesManager, "uses_pages_directory"),
        (memory_media_file_storage, "_calculate_file_id"),
        (media_file_manager, "MediaFileMetadata"),
        (MediaFileManager, "clear_session_refs"),
        (MediaFileManager, "add_deferred"),
        (AppSession, "register_file_watchers"),
        (AppSession, "_clear_queue"),
        (AppSession, "_call_soon_on_event_loop"),
        (AppSession, "_on_scriptrunner_event"),
        (app_session, "ScriptRunner"),
        (MemorySessionStorage, "save"),
    ]
    before = [getattr(owner, name) for owner, name in changed]
    was_mended = hasattr(AppSession, "_wake_event_loop")
    mend_streamlit()
    yield
    for (owner, name), value in zip(changed, before, strict=True):
        setattr(owner, name, value)
    if not was_mended:
        del AppSession._wake_event_loop  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def cut() -> list[Trace]:
    """Forty runs of one long sentence; in each another edge of the last token is cut."""
    model = load_model("house-gpt", device="cpu")
    text = model.tokenizer.decode(model.tokenizer.encode(WORDS * 12)[:150])
    place = frozenset({"decoder.0.self"})
    return [
        model.trace(text, intervention=Intervention(blocked=frozenset({edge}), only=place))
        for edge in EDGES
    ]


def page(trace: Trace) -> bytes:
    """What “Picture as a page” makes."""
    tokens = [token.text for token in trace.tokens]
    attention = trace.find("decoder.0.self")
    picture = head_picture(attention, None, head=0, stage="weights", queries=tokens, keys=tokens)
    return standalone(picture.title, "", picture_figures(picture))


def test_forty_visitors_get_forty_files(cut: list[Trace]) -> None:
    storage = MemoryMediaFileStorage("/media")
    files = [page(trace) for trace in cut]
    names = [
        storage.load_and_get_id(file, "text/html", MediaFileKind.DOWNLOADABLE, "picture")
        for file in files
    ]
    assert len(set(files)) == len(set(names)) == len(EDGES)
    assert [storage.get_file(name).content for name in names] == files


def test_a_byte_anywhere_in_a_large_file_gives_it_another_name() -> None:
    storage = MemoryMediaFileStorage("/media")
    plain = bytearray(3_000_000)
    names = set()
    for place in range(0, len(plain), 100_000):
        plain[place] ^= 1
        names.add(storage.load_and_get_id(bytes(plain), "a/b", MediaFileKind.DOWNLOADABLE, "c"))
        plain[place] ^= 1
    assert len(names) == 30


class Visitor:
    """A session of a server, whose page is what a test says. Streamlit's own runner runs it."""

    def __init__(self, name: str, manager: MediaFileManager, folder: Path) -> None:
        self.name, self.manager, self.state = name, manager, SessionState()
        self.script = folder / f"{name}.py"
        self.script.write_text("import streamlit as st\nst.session_state.page()\n")
        self.names: dict[str, str] = {}  # of the files that the browser knows, by their labels

    def run(self, page: Callable[[], object]) -> None:
        """One run, and those for which it stops, until the last one has ended."""
        self.state["page"] = page
        loop = asyncio.new_event_loop()
        runner = app_session.ScriptRunner(
            session_id=self.name,
            main_script_path=str(self.script),
            session_state=self.state,
            uploaded_file_mgr=mock.Mock(),
            script_cache=ScriptCache(),
            initial_rerun_data=RerunData(),
            user_info={},
            fragment_storage=MemoryFragmentStorage(),
            pages_manager=PagesManager(str(self.script)),
            event_loop=loop,
        )
        runner.on_event.connect(self._hear, weak=False)
        runner.start()
        assert runner._script_thread
        runner._script_thread.join()
        loop.close()

    def _hear(self, runner: object, event: ScriptRunnerEvent, **more: Any) -> None:
        message = more.get("forward_msg")
        if event is ScriptRunnerEvent.ENQUEUE_FORWARD_MSG and message.HasField("delta"):
            button = message.delta.new_element.download_button
            if button.label:
                self.names[button.label] = button.deferred_file_id or button.url

    def saved(self, name: str) -> bytes:
        """What the browser gets for a press on a button with this name of a file, or address."""
        address = name if name.startswith("/") else self.manager.execute_deferred(name)
        for _ in range(3):
            self.manager.remove_orphaned_files()  # others' runs end meanwhile
        file = self.manager.read_file(address.rpartition("/")[2])
        return file.content


@pytest.fixture
def visitor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Visitor:
    manager = MediaFileManager(MemoryMediaFileStorage("/media"))
    server = mock.MagicMock(spec=Runtime, media_file_mgr=manager)
    monkeypatch.setattr(Runtime, "_instance", server)
    return Visitor("mine", manager, tmp_path)


def draws(*contents: str, above: int = 0, stops: bool = False) -> Callable[[], None]:
    """A page with a button for each content, the first made on request; above: how many lines stand above.
    stops: for another run, before it has drawn anything."""

    def page() -> None:
        if stops:
            raise RerunException(RerunData())
        for line in range(above):
            st.write(line)
        for label, content in zip(("on request", "at once"), contents, strict=False):
            data = content if label == "at once" else content.encode
            st.download_button(label, data, file_name=f"{content}.txt", key=label)  # type: ignore[arg-type]

    return page


def test_a_press_finds_its_file_at_every_moment_of_a_later_run(visitor: Visitor) -> None:
    found: list[bytes] = []

    def press(names: dict[str, str]) -> None:
        found.extend(map(visitor.saved, names.values()))

    visitor.run(draws("old", "old"))
    shown = dict(visitor.names)  # until the browser hears of the later run

    def page() -> None:
        press(shown)
        draws("new", "new", above=2)()
        press(shown)

    visitor.run(page)
    press(shown)
    assert found == [b"old", b"old", *[b"new", b"old"] * 2]
    assert visitor.saved(visitor.names["at once"]) == b"new"


def test_a_run_that_stops_for_another_one_leaves_the_files_of_the_page(visitor: Visitor) -> None:
    visitor.run(draws("old", "old"))
    found: list[bytes] = []
    runs = iter(
        [
            draws(stops=True),
            draws(stops=True),
            lambda: found.extend(map(visitor.saved, visitor.names.values())),
        ]
    )
    visitor.run(lambda: next(runs)())
    assert found == [b"old", b"old"]


def test_of_a_button_that_is_gone_and_of_a_session_that_has_ended_nothing_is_kept(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = visitor.manager
    for end in (lambda: visitor.run(draws()), lambda: manager.clear_session_refs("mine")):
        for content in ("a text", "another"):
            visitor.run(draws(content, content))
            visitor.saved(visitor.names["on request"])
        assert len(manager._deferred_callables) == 1
        end()
        manager.remove_orphaned_files()
        with monkeypatch.context() as later:
            clock = SimpleNamespace(monotonic=lambda: time.monotonic() + streamlit_patches.TO_FETCH)
            later.setattr(streamlit_patches, "time", clock)
            manager.remove_orphaned_files()
        with pytest.raises(MediaFileStorageError, match="not found"):
            visitor.saved(visitor.names["on request"])
        for kept in (
            manager._files_by_session_and_coord,
            manager._file_metadata,
            manager._deferred_callables,
            manager._deferred_ids_by_session,
            manager._storage._files_by_id,
        ):
            assert not kept


def waiting(request: RerunData, *others: RerunData, session: str = "mine") -> RerunData:
    """What waits to be run in a session's new runner, after other requests have come too."""
    loop = asyncio.new_event_loop()
    runner = app_session.ScriptRunner(
        session_id=session,
        main_script_path="app.py",
        session_state=SessionState(),
        uploaded_file_mgr=mock.Mock(),
        script_cache=ScriptCache(),
        initial_rerun_data=request,
        user_info={},
        fragment_storage=mock.Mock(),
        pages_manager=mock.Mock(),
        event_loop=loop,
    )
    loop.close()
    for other in others:
        assert runner.request_rerun(other)
    return runner._requests.on_scriptrunner_ready().rerun_data


def test_a_runner_that_takes_the_place_of_backs_own_knows_that_it_came_back() -> None:
    asked = RerunData(query_string="head=2")
    assert not waiting(asked).is_history_navigation
    assert waiting(replace(asked, is_history_navigation=True)).is_history_navigation
    assert waiting(asked).is_history_navigation


def test_a_picture_that_reports_late_does_not_lead_back_to_the_page_that_the_reader_leaves() -> (
    None
):
    asked = RerunData(page_script_hash="all_heads", query_string="head=2")
    late = RerunData(page_script_hash="attention", query_string="head=3", fragment_id="picture")
    run = waiting(asked, late)
    assert (run.page_script_hash, run.query_string) == ("all_heads", "head=2")
    assert run.fragment_id_queue == []  # the whole page


def test_a_link_clicked_before_a_choice_is_heard_takes_it_along() -> None:
    picture = WidgetState(id="picture", json_value="head 2")
    chosen = RerunData(
        page_script_hash="attention",
        fragment_id="picture",
        widget_states=WidgetStates(widgets=[picture, WidgetState(id="box", string_value="a cat")]),
    )
    of_frame = WidgetStates(widgets=[WidgetState(id="box", string_value="a dog")])
    run = waiting(chosen, RerunData(page_script_hash="all_heads", widget_states=of_frame))
    assert run.page_script_hash == "all_heads"
    told = {state.id: state.json_value or state.string_value for state in run.widget_states.widgets}
    assert told == {"picture": "head 2", "box": "a dog"}


def test_a_picture_of_the_page_that_is_open_says_where_it_stands() -> None:
    own = RerunData(page_script_hash="attention", query_string="head=3", fragment_id="picture")
    first = RerunData(page_name="attention")  # an address that was typed has a name for its page
    for asked in (first, replace(own, fragment_id=None, query_string="head=2")):
        run = waiting(asked, own)
        assert (run.page_script_hash, run.query_string) == ("attention", "head=3")


def test_a_part_that_is_drawn_anew_takes_along_what_waits_of_the_parts_inside_it() -> None:
    fragments, queue = MemoryFragmentStorage(), ForwardMsgQueue()
    for name, parent in (("view", None), ("table", "view"), ("cell", "table"), ("beside", None)):
        fragments.register(name, lambda: None, parent_fragment_id=parent)
    for number, name in enumerate(("", "view", "table", "cell", "beside")):
        message = ForwardMsg()
        message.metadata.delta_path[:] = [0, number]
        message.delta.fragment_id = name
        message.delta.new_element.text.body = name
        queue.enqueue(message)
    session = SimpleNamespace(_browser_queue=queue, _fragment_storage=fragments)
    AppSession._clear_queue(cast(AppSession, session), ["view"])
    assert [message.delta.fragment_id for message in queue.flush()] == ["", "beside"]


def test_what_a_run_says_is_heard_in_its_order_and_with_few_calls_of_the_loop() -> None:
    """A thousand messages from a thread, then one that may not wait, beside a callback that fails."""
    heard: list[int] = []
    calls = 0

    async def listen() -> None:
        nonlocal calls
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        loop.set_exception_handler(lambda loop, context: heard.append(-1))
        wake = loop.call_soon_threadsafe

        def counted(callback: Callable[[], object], *arguments: object, **more: object) -> object:
            nonlocal calls
            calls += 1
            return wake(callback, *arguments, **more)  # type: ignore[arg-type]

        session = cast(
            "AppSession", SimpleNamespace(_event_loop=SimpleNamespace(call_soon_threadsafe=counted))
        )

        def fail() -> None:
            raise ValueError("one of the callbacks fails")

        def run() -> None:
            for number in range(1000):
                say(session, partial(heard.append, number), after=3600)
            say(session, fail, after=3600)
            say(session, ended.set)

        thread = threading.Thread(target=run)
        thread.start()
        await ended.wait()
        thread.join()
        say(session, partial(heard.append, 1000), after=1e-3)  # a new first one is heard too
        while heard[-1] != 1000:
            await asyncio.sleep(0)

    asyncio.run(listen())
    assert heard == [*range(1000), -1, 1000]
    assert calls == 3


class Listening(AppSession):
    """A session that only notes what its event loop hears, and counts how often that is woken."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.heard: list[object] = []
        self.wakings = 0
        self._own = loop
        self._event_loop = cast(
            "asyncio.AbstractEventLoop", SimpleNamespace(call_soon_threadsafe=self.wake)
        )

    def __del__(self) -> None:
        """There is nothing to shut down."""

    def wake(self, callback: Callable[[], object]) -> None:
        self.wakings += 1
        self._own.call_soon_threadsafe(callback)

    def _handle_scriptrunner_event_on_event_loop(self, *given: object, **more: object) -> None:
        self.heard.append(given[2] or given[1])


def test_the_browser_keeps_a_message_for_longer_than_requests_are_on_their_way() -> None:
    """What a new session is told: the runs after which its browser forgets a message that was not used."""
    told = ForwardMsg()
    _populate_config_msg(told.new_session.config)
    assert told.new_session.config.max_cached_message_age >= 10  # Streamlit's own: 2


def test_the_end_of_a_run_is_heard_at_once_and_after_its_last_delta(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streamlit_patches, "TOGETHER", 3600)
    start, end = (ScriptRunnerEvent.SCRIPT_STARTED, ScriptRunnerEvent.SCRIPT_STOPPED_WITH_SUCCESS)

    async def listen() -> Listening:
        session = Listening(asyncio.get_running_loop())

        def run() -> None:
            session._on_scriptrunner_event(None, start)
            for number in range(1, 101):
                delta = cast("ForwardMsg", number)
                session._on_scriptrunner_event(
                    None, ScriptRunnerEvent.ENQUEUE_FORWARD_MSG, forward_msg=delta
                )
            session._on_scriptrunner_event(None, end)

        await asyncio.to_thread(run)
        while end not in session.heard:
            await asyncio.sleep(0)
        return session

    session = asyncio.run(listen())
    assert session.heard == [start, *range(1, 101), end]
    assert session.wakings == 2


def test_the_session_of_who_left_ends_in_time_also_where_nobody_else_leaves() -> None:
    storage = MemorySessionStorage(ttl_seconds=0)
    manager = WebsocketSessionManager(
        storage, MemoryUploadedFileManager("/upload"), ScriptCache(), lambda: None
    )

    async def visits() -> tuple[weakref.ref[AppSession], bool]:
        one, other = (
            manager.connect_session(mock.Mock(), ScriptData("app.py", False), {}) for _ in range(2)
        )
        info = manager.get_session_info(one)
        gone = weakref.ref(info.session)
        info.session.session_state["what the page holds"] = {"a large value"}
        held = weakref.ref(info.session.session_state["what the page holds"])
        manager.disconnect_session(one)
        while held() is not None:  # also where somebody still refers to the session, as `info` does
            await asyncio.sleep(0)
        del info
        return gone, manager.is_active_session(other)

    gc.collect()
    gc.disable()  # it is not left to the collector, which may come much later
    try:
        gone, stays = asyncio.run(asyncio.wait_for(visits(), 60))
        assert gone() is None
        assert stays
    finally:
        gc.enable()


def test_a_second_import_leaves_the_first_ones_mend() -> None:
    spec = importlib.util.spec_from_file_location("imported_again", streamlit_patches.__file__)
    assert spec
    assert spec.loader
    again = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(again)
    mended = [
        (AppSession, "_call_soon_on_event_loop"),
        (AppSession, "_on_scriptrunner_event"),
        (MediaFileManager, "clear_session_refs"),
        (MediaFileManager, "add_deferred"),
    ]
    before = [getattr(owner, name) for owner, name in mended]
    again.mend_streamlit()
    assert [getattr(owner, name) for owner, name in mended] == before

    async def listen() -> Listening:
        session = Listening(asyncio.get_running_loop())
        again.say(session, partial(session.heard.append, "heard"))
        while not session.heard:
            await asyncio.sleep(0)
        return session

    assert asyncio.run(listen()).wakings == 1


def test_no_installed_package_is_searched_for_components(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the app's own components are known; the search would read what each package says of itself."""
    searched: list[object] = []
    monkeypatch.setattr(importlib.metadata, "distributions", lambda: searched.append(1) or [])
    scan = manifest_scanner.scan_component_manifests
    scan = getattr(scan, "__wrapped__", scan)  # the tests keep what one search has found
    monkeypatch.setattr(manifest_scanner, "scan_component_manifests", scan)
    manager = BidiComponentManager()
    manager.discover_and_register_components(start_file_watching=False)
    assert searched, "Streamlit searches in another way"
    searched.clear()
    streamlit_patches.look_for_no_components()
    manager.discover_and_register_components(start_file_watching=False)
    assert not searched
