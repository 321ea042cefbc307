"""A real server with few descriptors, half requests and readers that read nothing; and its end."""

import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.hasty_server import FOREVER
from tests.server import REPOSITORY, Server
from tools.web_security_table import UPGRADE, answered
from viz.explorer.assets import PLOTLY_ADDRESS
from viz.server import connections, starting

pytestmark = pytest.mark.process

PATIENCE = 120.0  # seconds until a state counts as never reached
FEW = 128  # descriptors
HALF = b"GET / HTTP/1.1\r\nHost: localhost"


class Reached(Server):
    """A server with the connections to it, and its log."""

    def socket(self, *, takes: int | None = None) -> socket.socket:
        """A connection; takes: bytes that the system takes for a reader that reads nothing."""
        raw = socket.socket()
        if takes is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, takes)
        raw.settimeout(PATIENCE)
        raw.connect(("127.0.0.1", self.port))
        return raw

    def session(self) -> ClientConnection:
        """A websocket as a page opens it. Raises InvalidStatus where it is refused."""
        return connect(
            f"ws://127.0.0.1:{self.port}/_stcore/stream",
            compression=None,
            max_size=None,
            legacy=True,
        )

    def lines(self) -> list[dict[str, object]]:
        """The log."""
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]


def wait_for(state: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not state():
        assert time.monotonic() < deadline
        time.sleep(0.1)


Start = Callable[..., Reached]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Call it: a server that is ready. seconds: its patience; most: its descriptors."""
    with ExitStack() as running:

        def start_(*, seconds: float = 600.0, most: int = 4_096) -> Reached:
            server = Reached(
                tmp_path / "said",
                ("tests.hasty_server", str(seconds)),
                {"STREAMLIT_SERVER_WEBSOCKET_PING_INTERVAL": f"{seconds:.0f}"},
            )
            limits = most // 2, most
            server.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limits))
            running.callback(server.process.wait)
            running.callback(server.process.kill)
            server.wait()
            return server

        yield start_


def is_ready(port: int) -> bool:
    try:
        return answered(port, "/readyz").status == 200
    except OSError:
        return False


def draw(session: ClientConnection, page: str = "library") -> None:
    """Asks for a page and reads it."""
    ask(session, page)
    ended = False
    while not ended:
        message = ForwardMsg.FromString(session.recv(timeout=PATIENCE, decode=False))
        ended = message.WhichOneof("type") == "script_finished"


def ask(session: ClientConnection, page: str, query: str = "") -> None:
    state = ClientState(page_name=page, query_string=query)
    session.send(BackMsg(rerun_script=state).SerializeToString())


def test_who_is_one_too_many_hears_a_sentence_and_the_others_go_on(start: Start) -> None:
    server = start(most=FEW)
    assert server.lines()[0]["descriptors"] == FEW  # more than it was started with
    sessions: list[ClientConnection] = []
    with ExitStack() as open_:

        def come() -> None:
            while len(sessions) < FEW:
                sessions.append(open_.enter_context(server.session()))
                draw(sessions[-1])

        with pytest.raises(InvalidStatus) as refused:
            come()
        assert refused.value.response.status_code == 503
        assert refused.value.response.body == connections.SENTENCE.encode()
        page = answered(server.port)
        assert (page.status, page.text) == (503, connections.SENTENCE)
        assert answered(server.port, "/readyz").status == 200
        assert len(sessions) >= 10
        draw(sessions[0])
    errors = [line for line in server.lines() if line["level"] not in ("info", "warning")]
    assert len(errors) <= 1  # the library's word on a refused websocket


def test_a_storm_of_half_requests_is_outlived_with_a_line_or_two(start: Start) -> None:
    server = start(most=FEW, seconds=2.0)
    with ExitStack() as open_:
        storm = [open_.enter_context(server.socket()) for _ in range(3 * FEW)]
        for one in storm:
            try:
                one.sendall(HALF)
            except OSError:  # turned away already
                continue
        wait_for(lambda: is_ready(server.port))
        wait_for(lambda: sockets(server) == 0)  # though nobody has hung up
        assert answered(server.port).status == 200
    assert len(server.lines()) < 10
    assert not [
        line for line in server.lines() if "accept" in str(line)
    ]  # never without descriptors


def half_a_request(server: Server, open_: ExitStack) -> None:
    open_.enter_context(server.socket()).sendall(HALF)


def a_reader_of_nothing(server: Server, open_: ExitStack) -> None:
    reader = open_.enter_context(server.socket(takes=4_096))
    reader.sendall(f"GET /{PLOTLY_ADDRESS} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    wait_for(lambda: bool(reader.recv(1, socket.MSG_PEEK)))


def a_session_that_reads_nothing(server: Server, open_: ExitStack) -> None:
    head = "".join(f"{name}: {value}\r\n" for name, value in UPGRADE.items())
    reader = open_.enter_context(server.socket(takes=4_096))
    reader.sendall(f"GET /_stcore/stream HTTP/1.1\r\nHost: localhost\r\n{head}\r\n".encode())
    assert b" 101 " in reader.recv(4_096, socket.MSG_PEEK)
    asked = BackMsg(rerun_script=ClientState(page_name="library")).SerializeToString()
    frame = bytes([0x82, 0x80 | len(asked), 0, 0, 0, 0]) + asked  # masked with nothing
    for _ in range(20):
        reader.sendall(frame)


def an_open_session(server: Server, open_: ExitStack) -> None:
    draw(open_.enter_context(server.session()))


def a_pass_without_an_end(server: Server, open_: ExitStack) -> None:
    session = open_.enter_context(server.session())
    ask(session, "", f"text={FOREVER}")
    draw(open_.enter_context(server.session()))  # the first one is on its way, as it came before


def half_a_file(server: Server, open_: ExitStack) -> None:
    set_ = answered(server.port, "/_stcore/health").headers["set-cookie"]
    (cookie,) = re.findall(r"_streamlit_xsrf=([^;]+)", set_)
    with server.session() as session:
        ask(session, "library")
        message = ForwardMsg.FromString(session.recv(timeout=PATIENCE, decode=False))
        own = message.new_session.initialize.session_id
        sends = open_.enter_context(server.socket())
        sends.sendall(
            f"PUT /_stcore/upload_file/{own}/a HTTP/1.1\r\nHost: localhost\r\ncontent-length: 1000\r\n"
            "content-type: multipart/form-data; boundary=x\r\n"
            f"cookie: _streamlit_xsrf={cookie}\r\nx-xsrftoken: {cookie}\r\n\r\n--x".encode()
        )
        assert b" 408 " in sends.recv(4_096)


STUCK = half_a_request, half_a_file, a_reader_of_nothing, a_session_that_reads_nothing


def test_who_sends_half_or_reads_nothing_is_let_go(start: Start) -> None:
    server = start(seconds=2.0)
    with ExitStack() as open_:
        for stuck in STUCK:
            stuck(server, open_)
            wait_for(lambda: sockets(server) == 0)


def sockets(server: Server) -> int:
    """Connections that the server holds now."""
    port = f":{server.port:04X}"
    held = links(server.process.pid)
    table = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    rows = [row.split() for row in table]
    return sum(
        row[1].endswith(port) and row[3] != "0A" and f"socket:[{row[9]}]" in held for row in rows
    )


def links(process: int) -> set[str]:
    """What the descriptors of a process lead to; one that is closed meanwhile is left out."""
    found = set()
    for entry in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(os.readlink(entry))
    return found


@pytest.mark.parametrize(
    "hanging",
    [
        (half_a_request, a_reader_of_nothing, a_session_that_reads_nothing, an_open_session),
        (a_pass_without_an_end,),
    ],
    ids=["connections", "a pass"],
)
def test_the_process_ends_when_it_is_told_to_whatever_hangs_on_it(
    start: Start, hanging: tuple[Callable[[Server, ExitStack], None], ...]
) -> None:
    server = start()
    with ExitStack() as open_:
        for hang in hanging:
            hang(server, open_)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE) in (-signal.SIGTERM, 128 + signal.SIGTERM)
    assert connections.SECONDS_TO_ANSWER < starting.SECONDS_TO_END < 10


def test_a_process_that_does_not_end_by_itself_is_ended() -> None:
    deaf = (
        "import signal, time\n"
        "from viz.server import starting\n"
        "starting.SECONDS_TO_END = 0.1\n"
        "signal.signal(signal.SIGTERM, lambda *_: None)\n"
        "starting.end_in_time()\n"
        "print('deaf', flush=True)\n"
        "while True: time.sleep(1)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", deaf], cwd=REPOSITORY, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"deaf\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 128 + signal.SIGTERM
