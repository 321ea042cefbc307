"""One real server, and everything that a stranger may try on it. Nothing of it leaves this machine."""

import asyncio
import re
import socket
import sys
from http.client import HTTPResponse
from pathlib import Path
from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.testing.v1 import AppTest

from tests.cases import cases
from tests.one_server import shared
from tests.server import REPOSITORY
from tests.visitor import Visitor
from tests.way_out import reach
from tools.web_security_table import LINES, PAGE, answered, written
from viz.server import connections, security
from viz.server.security import browser_rules, inline_script_hashes, is_upload, web_security
from viz.server.websocket_messages import FILES_AT_ONCE, MESSAGES, is_used
from viz.state.locality import is_local
from viz.state.navigation import PAGES


@pytest.fixture(scope="module")
def reached() -> Path:
    """Where the server writes down what it reached for; no file as long as that is nothing."""
    return shared().reached


@pytest.fixture(scope="module")
def port() -> int:
    return shared().port


@cases("line", LINES)
def test_each_request_gets_the_answer_of_the_table(line, port: int) -> None:
    assert line.ask(port) == line.answer


@pytest.mark.parametrize("host", ["localhost", "evil.example"])
def test_every_answer_carries_the_rules_for_the_browser_also_a_refusal(
    port: int, host: str
) -> None:
    answer = answered(port, host=host)
    assert browser_rules(encrypted=False).items() <= answer.headers.items()


def raw(port: int, *lines: str) -> tuple[int, dict[str, str]]:
    """Status and headers of the answer to exactly these lines."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall("\r\n".join(["GET / HTTP/1.1", *lines, "", ""]).encode())
        with HTTPResponse(connection) as answer:
            answer.begin()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}


def test_what_is_refused_before_the_app_is_asked_carries_the_rules_too(
    port: int, subtests: pytest.Subtests
) -> None:
    handshake = ("Host: localhost", "Connection: Upgrade", "Upgrade: websocket")
    for lines in [("Host: localhost", "Host: localhost"), ("Host localhost",), handshake]:
        with subtests.test(lines=lines):
            status, headers = raw(port, *lines)
            assert status in (400, 426)
            assert browser_rules(encrypted=False).items() <= headers.items()
            assert headers["connection"].lower() == "close" or lines == handshake


def test_a_refused_request_whose_body_may_go_on_closes_the_connection(
    port: int, subtests: pytest.Subtests
) -> None:
    for lines in [
        ("Content-Length: 4", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked",),
        ("Content-Length: 4",),
    ]:
        with subtests.test(lines=lines):
            status, headers = raw(port, "Host: localhost", *lines)
            assert (status, headers["connection"]) == (413, "close")
    assert "connection" not in raw(port, "Host: evil.example")[1]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")
def test_one_address_cannot_take_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    class Connection:
        def __init__(self, address: str) -> None:
            self.client = address, 1

    def refused(address: str) -> bool:
        scope = {"type": "http", "path": "/", "client": (address, 1)}
        return connections.no_room(scope) is not None

    many = [Connection("192.0.2.1") for _ in range(15)]
    server = connections._Server({*many})
    monkeypatch.setattr(connections, "_server", server)
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 20)
    assert not refused("192.0.2.1")  # nobody else wants them
    server.connections.add(Connection("192.0.2.1"))
    assert refused("192.0.2.1")
    assert not refused("192.0.2.2")
    assert not refused("127.0.0.1")  # a proxy on this computer
    server.connections |= {Connection("127.0.0.1") for _ in range(5)}
    assert refused("127.0.0.1")


def test_the_policy_lets_exactly_the_inline_scripts_of_streamlits_own_page_run(port: int) -> None:
    page = answered(port).text
    sources = re.findall(
        r"'sha256-[^']+'", browser_rules(encrypted=False)["content-security-policy"]
    )
    assert sources == inline_script_hashes(page) != []
    assert inline_script_hashes(page.replace("prerenderReady", "other")) != sources


def test_no_page_reaches_for_another_machine_or_starts_a_program(port: int, reached: Path) -> None:
    async def visit() -> list[str]:
        troubles: list[str] = []
        for page in PAGES:
            async with Visitor(port, page.address, "") as visitor:
                troubles += visitor.troubles
        return troubles

    assert asyncio.run(visit()) == []
    assert not reached.exists(), reached.read_text()


def test_a_session_that_comes_back_watches_no_files(port: int, reached: Path) -> None:
    async def come_back() -> tuple[str, str]:
        async with Visitor(port, "library", "") as visitor:
            left = visitor.session
        async with Visitor(port, "library", "", session=left) as again:
            return left, again.session

    left, again = asyncio.run(come_back())
    assert left == again
    assert not reached.exists(), reached.read_text()


@pytest.mark.parametrize(
    ("headers", "opens"),
    [
        ({}, True),
        ({"X-Forwarded-For": "192.0.2.1"}, False),
        ({"Forwarded": "for=192.0.2.1"}, False),
        ({"Via": "1.1 proxy"}, False),
        ({"X-Forwarded-Host": "class.example"}, False),
    ],
    ids=str,
)
def test_who_comes_through_a_proxy_on_this_machine_opens_none_of_its_folders(
    port: int, headers: dict[str, str], opens: bool
) -> None:
    folder = str(REPOSITORY / "model/assets/stories")

    async def visit() -> str:
        query = urlencode({"model": folder, "text": "The cat sat"})
        async with Visitor(port, "", query, headers=headers) as visitor:
            return visitor.query

    assert (urlencode({"model": folder}) in asyncio.run(visit())) == opens


@cases("peer, headers, local", [
    ("127.0.0.1", {"host": "localhost:8501"}, True),
    ("::1", {"host": "[::1]:8501"}, True),
    ("127.0.0.1", {}, True),
    ("192.168.1.5", {"host": "localhost"}, False),
    ("127.0.0.1", {"host": "class.example"}, False),
    ("127.0.0.1", {"host": "localhost.class.example"}, False),
    ("127.0.0.1", {"host": "127.0.0.1.class.example"}, False),
    ("127.0.0.1", {"host": "[::1"}, False),
    ("127.0.0.1", {"host": "localhost", "X-Forwarded-For": ""}, False),
    ("127.0.0.1", {"host": "localhost", "x-real-ip": "127.0.0.1"}, False),
    ("127.0.0.1", {"host": "localhost", "X-Client-IP": "192.0.2.1"}, False),
    ("127.0.0.1", {"host": "localhost", "Fly-Client-IP": "192.0.2.1"}, False),
    ("127.0.0.1", {"host": "localhost", "Tailscale-User-Login": "ann"}, False),
    ("127.0.0.1", {"host": "localhost", "CDN-Loop": "cloudflare"}, False),
    ("127.0.0.1", {"host": "localhost", "X-Prometheus-Scrape-Timeout-Seconds": "10"}, True),
    ("a socket", {"host": "localhost"}, False),
    (None, {"host": "localhost"}, False),
])  # fmt: skip
def test_only_a_local_peer_by_a_local_name_without_a_proxy_is_local(peer, headers, local) -> None:
    assert is_local(peer, headers.items()) == local


@cases("kind", [field.name for field in BackMsg.DESCRIPTOR.oneofs[0].fields])
def test_only_the_messages_that_the_app_uses_reach_streamlit(kind) -> None:
    message = BackMsg()
    field = BackMsg.DESCRIPTOR.fields_by_name[kind]
    if field.message_type is None:
        setattr(message, kind, True)
    else:
        getattr(message, kind).SetInParent()
    assert is_used(came(message)) == (kind in MESSAGES)


@cases("operation, used", [
    ("deferred_file", True),
    ("dataframe_chunk", False),
    ("install_skills", False),
    ("dismiss_skills_nudge", False),
])  # fmt: skip
def test_of_streamlits_operations_only_files_made_on_request_are_used(operation, used) -> None:
    message = BackMsg()
    getattr(message.backend_operation_request, operation).SetInParent()
    assert is_used(came(message)) == used


def test_nobody_gets_addresses_for_more_files_at_once_than_a_box_takes() -> None:
    message = BackMsg()
    message.file_urls_request.file_names.extend([""] * FILES_AT_ONCE)
    assert is_used(came(message))
    message.file_urls_request.file_names.append("")
    assert not is_used(came(message))


def came(message: BackMsg) -> dict[str, object]:
    """A message as the server hands it on."""
    return {"type": "websocket.receive", "bytes": message.SerializeToString()}


@cases("event, arguments, found", [
    ("socket.connect", (None, ("192.0.2.1", 443)), True),
    ("socket.connect", (None, ("::1", 443, 0, 0)), False),
    ("socket.connect", (None, "/run/some.socket"), False),
    ("socket.getaddrinfo", ("hub.example", 443, 0, 0, 0), True),
    ("socket.getaddrinfo", (b"localhost", 0, 0, 0, 0), False),
    ("socket.sendto", (None, ("8.8.8.8", 53)), True),
    ("subprocess.Popen", ("pip", [], None, None), True),
])  # fmt: skip
def test_the_guard_sees_every_way_out(event, arguments, found) -> None:
    assert (reach(event, arguments) is not None) == found


@pytest.mark.parametrize(("allowed", "status"), [("on", 200), ("local", 404), ("off", 404)])
def test_prometheus_reads_the_metrics_by_the_machine_s_number_where_everybody_may(
    allowed: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTENTION_METRICS", allowed)
    routes = [Route("/metrics", lambda _: Response("numbers")), Route("/", lambda _: Response())]
    visitor = TestClient(
        Starlette(routes=routes, middleware=web_security()), base_url="http://10.0.0.7:8501"
    )
    assert visitor.get("/metrics").status_code == status
    assert visitor.get("/").status_code == 400


def test_an_error_of_ours_tells_the_visitor_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(_: Request) -> Response:
        raise KeyError("secret")

    app = Starlette(routes=[Route("/", broken)], middleware=web_security())
    answer = TestClient(app, base_url="http://localhost").get("/")
    assert (answer.status_code, answer.text) == (500, security.SERVER_ERROR)
    assert browser_rules(encrypted=False).items() <= dict(answer.headers).items()
    assert "secret" in caplog.text


@pytest.mark.parametrize(
    ("folder", "path", "sends"),
    [("", "", True), ("class", "/class", True), ("class", "", False), ("", "/class", False)],
)
def test_a_file_is_sent_to_the_folder_that_the_app_lives_in(
    folder: str, path: str, sends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamlit.get_option", {"server.baseUrlPath": folder}.__getitem__)
    scope = {
        "type": "http", "method": "PUT", "path": f"{path}/_stcore/upload_file/a/b",
        "client": ("127.0.0.1", 1), "headers": [(b"host", b"localhost")],
    }  # fmt: skip
    assert is_upload(scope) == sends


def test_an_error_in_a_page_tells_the_visitor_nothing() -> None:
    page = AppTest.from_string("raise KeyError('secret of the server')").run()
    shown = str(page.exception[0].proto)
    assert "encountered an error" in shown
    assert not [
        word for word in ("secret", "KeyError", "Traceback", str(REPOSITORY)) if word in shown
    ]


def test_the_table_that_people_read_is_the_one_that_is_tried() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == written(page), "run: python -m tools.web_security_table"
