"""What the app answers to whom: each line is asked of a real server by tests/viz/server/test_security.py.

`python -m tools.web_security_table` writes the table into docs/security.md.
"""

import http.client
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tools.tables_of_docs import put_between, rewrite
from viz.server.security import browser_rules

PAGE = Path(__file__).resolve().parents[1] / "docs" / "security.md"
BEGIN = "<!-- answers: made by `python -m tools.web_security_table` -->"
END = "<!-- answers: end -->"
UNUSED_ANSWERS = {"git_info_changed", "backend_operation_response", "file_urls_response"}
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    "Sec-WebSocket-Version": "13",
}


@dataclass(frozen=True)
class Line:
    """One request in words, the answer it must get, and how to ask for it: a port to an answer."""

    request: str
    answer: str
    ask: Callable[[int], str]


def asked(
    path: str = "/",
    *,
    method: str = "GET",
    host: str | None = "localhost:{port}",
    body: bytes | None = None,
    **headers: str,
) -> Callable[[int], str]:
    """How to ask for a path; "{port}" in a header is the server's. The answer is the status."""

    def ask(port: int) -> str:
        return str(
            answered(port, path, method=method, host=host, body=body, headers=headers).status
        )

    return ask


@dataclass(frozen=True)
class Answer:
    """What came back: the status, the headers by their names in lower case, and the text."""

    status: int
    headers: Mapping[str, str]
    text: str


def answered(
    port: int,
    path: str = "/",
    *,
    method: str = "GET",
    host: str | None = "localhost:{port}",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """The server's answer to exactly these headers; an underscore in a name stands for a hyphen."""
    sent = {"host": host} if host is not None else {}
    if body is not None:
        sent["content-length"] = str(len(body))
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in (sent | dict(headers or {})).items():
            connection.putheader(name.replace("_", "-"), value.format(port=port))
        connection.endheaders(body)
        with connection.getresponse() as response:
            named = {name.lower(): value for name, value in response.getheaders()}
            text = "" if response.status == 101 else response.read().decode()
            return Answer(response.status, named, text)


def stream(*, host: str = "localhost:{port}", **headers: str) -> Callable[[int], str]:
    """The websocket's handshake: "opens", or the status of the refusal."""

    def ask(port: int) -> str:
        status = asked("/_stcore/stream", host=host, **UPGRADE, **headers)(port)
        return "opens" if status == "101" else status

    return ask


def sent(message: bytes | str) -> Callable[[int], str]:
    """A message on an open websocket: the code with which the server closes it."""

    def ask(port: int) -> str:
        with connect(f"ws://127.0.0.1:{port}/_stcore/stream", compression=None) as socket:
            try:
                socket.send(message)
                while True:
                    socket.recv(timeout=30)
            except ConnectionClosed as closed:
                code = closed.rcvd.code if closed.rcvd else "none"
                return f"closes with {code}"

    return ask


def unheard(message: BackMsg) -> Callable[[int], str]:
    """A message of Streamlit's that this app does not use: whether anything answers to it before the page
    that is asked for after it is drawn."""

    def ask(port: int) -> str:
        page = BackMsg(rerun_script=ClientState(page_name="glossary"))
        with connect(
            f"ws://127.0.0.1:{port}/_stcore/stream", compression=None, max_size=None
        ) as socket:
            for one in (message, page):
                socket.send(one.SerializeToString())
            answered = set()
            while "script_finished" not in answered:
                said = ForwardMsg.FromString(socket.recv(timeout=60, decode=False))
                answered.add(said.WhichOneof("type"))
        return "an answer" if answered & UNUSED_ANSWERS else "no answer; the page works"

    return ask


def installing_skills() -> BackMsg:
    """What asks Streamlit to write instructions for agents beside the app."""
    message = BackMsg()
    message.backend_operation_request.request_id = "1"
    message.backend_operation_request.install_skills.SetInParent()
    return message


def header(name: str, path: str = "/", **headers: str) -> Callable[[int], str]:
    """One header of an answer; "none" where it is not sent."""
    return lambda port: answered(port, path, headers=headers).headers.get(name, "none")


HERE = "http://localhost:{port}"
LINES = (
    Line("a page by an allowed name", "200", asked()),
    Line("by a foreign `Host` (DNS rebinding)", "400", asked(host="evil.example")),
    Line("by an allowed name as part of a foreign one", "400", asked(host="localhost.evil.example")),
    Line("without `Host`", "400", asked(host=None)),
    Line("`/readyz` by any `Host`", "200", asked("/readyz", host="10.0.0.7:8501")),
    Line("`/metrics` by any `Host`, from this computer", "404", asked("/metrics", host="10.0.0.7:8501")),
    Line("a page, asked by another site's script", "403", asked(origin="https://evil.example")),
    Line("the websocket, from our own page", "opens", stream(origin=HERE)),
    Line("the websocket, from no browser (no `Origin`)", "opens", stream()),
    Line("the websocket, from another site", "403", stream(origin="https://evil.example")),
    Line("from another port of this machine", "403", stream(origin="http://localhost:1")),
    Line("from a sandboxed or local file (`Origin: null`)", "403", stream(origin="null")),
    Line("by a foreign `Host`", "400", stream(host="evil.example")),
    Line(
        "by a foreign `Host` that its `Origin` matches",
        "400",
        stream(host="evil.example", origin="http://evil.example"),
    ),
    Line(
        "by https, from a page that came without",
        "403",
        stream(origin=HERE, x_forwarded_proto="wss"),
    ),
    Line("a message of 2 MB", "closes with 1009", sent(bytes(2_000_000))),
    Line("a message that is no message of Streamlit's", "closes with 1002", sent(b"\xff" * 40)),
    Line("a message that is text", "closes with 1011", sent("hello")),
    Line("a message that would write files beside the app", "no answer; the page works",
         unheard(installing_skills())),
    Line("an `Origin` that is no address", "403", stream(origin="http://[")),
    Line("`POST`", "405", asked(method="POST")),
    Line("`OPTIONS`, as a browser asks for a foreign page", "405", asked(method="OPTIONS")),
    Line("a file, from no page of this app", "403",
         asked("/_stcore/upload_file/a/b", method="PUT", body=b"x")),
    Line("a file, where the owner lets nobody send any", "405",
         asked("/_stcore/upload_file/a/b", method="PUT", body=b"x", **{"x-forwarded-for": "::1"})),
    Line("a file by another site's script", "403",
         asked("/_stcore/upload_file/a/b", method="PUT", body=b"x", origin="http://example.org")),
    Line("a file of 4 GB", "413", asked("/_stcore/upload_file/a/b", method="PUT",
         **{"content-length": str(2**32)})),
    Line("whether files may be sent", "404", asked("/_stcore/upload_file/a/b")),
    Line("a body where none belongs", "413", asked(body=b"x")),
    Line("an address of 50 KB", "414", asked("/?text=" + "x" * 50_000)),
    Line("headers of 50 KB", "431", asked(cookie="x" * 50_000)),
    Line("by Streamlit's own script, whether the app lives at a page", "300",
         asked("/attention/_stcore/health")),
    Line("the same at the root, where it does", "200", asked("/_stcore/health")),
    Line("a path out of the folder", "400", asked("/app/static/..%2f..%2fREADME.md")),
    Line("Streamlit's own metrics", "404", asked("/_stcore/metrics")),
    Line("Streamlit's interface for agents", "404", asked("/_stcore/agent/openapi.json")),
    Line("Streamlit's log-in", "404", asked("/auth/login")),
    Line("a permission for scripts of other sites", "none", header("access-control-allow-origin",
         "/app/static/katex/katex.min.js")),
    Line("`Strict-Transport-Security` without TLS", "none", header("strict-transport-security")),
    Line(
        "`Strict-Transport-Security` behind a trusted proxy with TLS",
        "max-age=31536000",
        header("strict-transport-security", x_forwarded_proto="https"),
    ),
)  # fmt: skip


def table() -> str:
    """Two tables: what is asked and what comes back, and the headers of every answer."""
    requests = [f"| {line.request} | {line.answer} |" for line in LINES]
    rules = [
        f"| `{name}` | {'<br>'.join(f'`{part}`' for part in value.split('; '))} |"
        for name, value in browser_rules(encrypted=False).items()
    ]
    return "\n".join(
        [
            "| request | answer |",
            "|---|---|",
            *requests,
            "",
            "| header | value |",
            "|---|---|",
            *rules,
        ]
    )


def written(page: str) -> str:
    """A page with the tables in their marked place. Raises ValueError where the marks are missing."""
    return put_between(page, table(), BEGIN, END)


if __name__ == "__main__":
    rewrite(PAGE, table(), BEGIN, END)
