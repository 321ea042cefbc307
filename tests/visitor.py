"""A visitor without a browser: speaks the app's websocket as its own page does.

It keeps what a browser keeps (widget states, the link, the messages it may be spared), sends what a click
sends, and waits until the server says that the run is over.
"""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Block_pb2 import Block
from streamlit.proto.Checkbox_pb2 import Checkbox
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.Radio_pb2 import Radio
from streamlit.proto.Selectbox_pb2 import Selectbox
from streamlit.proto.TextArea_pb2 import TextArea
from streamlit.proto.TextInput_pb2 import TextInput
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect

SPARED_AFTER = 2  # runs for which a message is remembered, as a browser does
PATIENCE = 240  # seconds until a run counts as failed


def _chosen(element: Radio | Selectbox) -> WidgetState:
    """What a choice among options starts with."""
    state = WidgetState(id=element.id)
    if element.set_value and element.raw_value:
        state.string_value = element.raw_value
    elif element.HasField("default") and len(element.options) > element.default:
        state.string_value = element.options[element.default]
    return state


def _switched(element: Checkbox) -> WidgetState:
    value = element.value if element.set_value else element.default
    return WidgetState(id=element.id, bool_value=value)


def _typed(element: TextInput | TextArea) -> WidgetState:
    value = element.value if element.set_value else element.default
    return WidgetState(id=element.id, string_value=value)


# A page tells the server the values its widgets start with.
VALUES: dict[str, Callable[..., WidgetState]] = {
    "radio": _chosen,
    "selectbox": _chosen,
    "checkbox": _switched,
    "text_input": _typed,
    "text_area": _typed,
}


@dataclass
class Visitor:
    """One session. `bytes`: what the server sent it so far; `troubles`: what went wrong."""

    port: int
    page: str
    query: str
    bytes: int = 0
    troubles: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(
        default_factory=dict
    )  # more than a browser on this computer sends
    session: str = ""  # the session to come back to; later the one that it is
    widgets: dict[str, str] = field(default_factory=dict)  # a widget's key -> its id
    fragments: dict[str, str] = field(default_factory=dict)  # a widget's key -> its fragment
    _states: dict[str, WidgetState] = field(default_factory=dict)
    _kept: dict[str, tuple[ForwardMsg, int]] = field(default_factory=dict)
    _components: set[str] = field(default_factory=set)
    _seen: set[str] = field(default_factory=set)  # ids of the widgets that the last run drew
    _runs: int = 0
    _socket: ClientConnection | None = None

    async def __aenter__(self) -> "Visitor":
        self._socket = await connect(
            f"ws://127.0.0.1:{self.port}/_stcore/stream",
            subprotocols=["streamlit", *(["token", self.session] if self.session else [])],  # type: ignore[list-item]
            additional_headers=self.headers,
            origin=f"http://127.0.0.1:{self.port}",  # type: ignore[arg-type]
            max_size=None,
            compression=None,
        )
        await self.run()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self._socket is not None:
            await self._socket.close()

    async def choose(self, key: str, value: str | bool) -> float:
        """Changes a widget and waits for the run, of the fragment alone in which it stands if it does;
        returns its milliseconds."""
        state = WidgetState(id=self.widgets[key])
        if isinstance(value, bool):
            state.bool_value = value
        elif self.widgets[key] in self._components:
            state.json_value = value
        else:
            state.string_value = value
        self._states[state.id] = state
        return await self.run(self.fragments[key])

    async def look_at(self, **selection: object) -> float:
        """Reports a head, stage and cell of the explorer, as it does after a click."""
        return await self.report({"selection": {"revision": 0, **selection}})

    async def report(self, state: dict[str, object]) -> float:
        """Sends the explorer's state as its component does; its fragment runs."""
        return await self.choose("explorer", json.dumps(state))

    async def run(self, fragment: str = "") -> float:
        """Asks for a run and reads until it is over; returns its milliseconds."""
        socket = self._socket
        if socket is None:
            raise RuntimeError("The visitor is not connected.")
        self._runs += 1
        self._seen = set()
        state = ClientState(
            query_string=self.query,
            page_name=self.page,
            fragment_id=fragment,
            cached_message_hashes=list(self._kept),
        )
        state.widget_states.widgets.extend(self._states.values())
        start = time.perf_counter()
        await socket.send(BackMsg(rerun_script=state).SerializeToString())
        async with asyncio.timeout(PATIENCE):
            while not self._read(await socket.recv(decode=False)):
                pass
        milliseconds = (time.perf_counter() - start) * 1000
        if not fragment:  # a browser forgets what is drawn no more
            self._states = {name: one for name, one in self._states.items() if name in self._seen}
        oldest = self._runs - SPARED_AFTER
        self._kept = {name: kept for name, kept in self._kept.items() if kept[1] >= oldest}
        return milliseconds

    def _read(self, content: bytes) -> bool:
        """Takes in one message; True if it ends the run."""
        self.bytes += len(content)
        message = ForwardMsg.FromString(content)
        kind = message.WhichOneof("type")
        if kind == "ref_hash":
            message = self._kept[message.ref_hash][0]
            self._kept[message.hash] = (message, self._runs)
            kind = message.WhichOneof("type")
        elif message.metadata.cacheable:
            self._kept[message.hash] = (message, self._runs)
        if kind == "new_session":
            self.session = message.new_session.initialize.session_id
        elif kind == "page_info_changed":
            self.query = message.page_info_changed.query_string
        elif kind == "delta":
            self._note(message)
        elif kind == "page_not_found":
            self.troubles.append("page not found")
        elif kind == "script_finished":
            return message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN
        return False

    def _note(self, message: ForwardMsg) -> None:
        """Remembers the widgets, and what a reader would see as an error."""
        delta = message.delta
        if delta.WhichOneof("type") == "add_block":
            self._open_tab(delta.add_block.tab_container)
            for opened in (delta.add_block.expandable, delta.add_block.popover):
                self._keep_widget(opened.id, delta.fragment_id)
        if delta.WhichOneof("type") != "new_element":
            return
        kind = delta.new_element.WhichOneof("type")
        element = getattr(delta.new_element, str(kind))
        if kind == "exception":
            self.troubles.append(element.message)
        if kind == "alert" and element.format == element.ERROR:
            self.troubles.append(element.body)
        id_ = getattr(element, "id", "")
        if not self._keep_widget(id_, delta.fragment_id):
            return
        if kind == "bidi_component":
            self._components.add(id_)
        elif kind in VALUES and (id_ not in self._states or element.set_value):
            self._states[id_] = VALUES[kind](element)

    def _keep_widget(self, id_: object, fragment: str) -> bool:
        """Remembers a widget by its key; False if the id is none of a widget."""
        if not isinstance(id_, str) or not id_.startswith("$$ID-"):
            return False
        key = id_.split("-", 2)[2]
        self.widgets[key], self.fragments[key] = id_, fragment
        self._seen.add(id_)
        return True

    def _open_tab(self, tabs: Block.TabContainer) -> None:
        """A page tells the server which of its tabs is open."""
        if tabs.id and tabs.id not in self._states:
            state = WidgetState(id=tabs.id, string_value=tabs.default_tab_label)
            self._states[tabs.id] = state
