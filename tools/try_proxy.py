"""`make proxy-check` runs two replicas behind deploy/Caddyfile on this machine and tries what it promises.

Everything happens in a network of its own (bubblewrap) that has nothing but its loopback, where the name
`app` stands for both replicas, as in compose.yaml. Needs Linux, root, `bwrap` and `caddy`.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from email.message import Message
from http.client import RemoteDisconnected
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect

from tests.visitor import Visitor

REPOSITORY = Path(__file__).resolve().parents[1]
REPLICAS = ("127.0.0.2", "127.0.0.3")
PROXY = "http://localhost"
SETTINGS = {
    "STREAMLIT_SERVER_ALLOWED_HOSTS": "localhost",
    "STREAMLIT_SERVER_ENABLE_WEBSOCKET_COMPRESSION": "true",
    "STREAMLIT_SERVER_PORT": "8501",
    "STREAMLIT_SERVER_HEADLESS": "true",
    "FORWARDED_ALLOW_IPS": "*",
    "ATTENTION_FETCH": "none",
    "SITE": PROXY,
    "STICKY": "the secret of this check",
}
LINK = urlencode({"text": "The keys to the cabinet are on the table", "layer": 1, "head": 2})


class Guest(Visitor):
    """A visitor who comes through the proxy with a cookie, and keeps what the page drew."""

    cookie = ""

    async def __aenter__(self) -> "Guest":
        self.drawn: list[bytes] = []
        self._socket = await connect(
            "ws://localhost/_stcore/stream",
            subprotocols=["streamlit"],  # type: ignore[list-item]
            origin=PROXY,  # type: ignore[arg-type]
            additional_headers={"Cookie": self.cookie},
            max_size=None,
            open_timeout=60,
        )
        await self.run()
        return self

    def _note(self, message: ForwardMsg) -> None:
        super()._note(message)
        if message.delta.HasField("new_element"):
            element = message.delta.new_element
            if element.WhichOneof("type") == "download_button":
                element.download_button.ClearField("deferred_file_id")  # each session has its own
            self.drawn.append(element.SerializeToString(deterministic=True))


@contextmanager
def running(command: list[str], **more: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, cwd=REPOSITORY, env=os.environ | SETTINGS | more)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=30)


def asked(address: str, headers: Mapping[str, str] | None = None) -> tuple[int, Message, bytes]:
    """Status, headers and body of an answer; status 0 where the connection is just ended."""
    request = urllib.request.Request(address, headers=dict(headers or {}))
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers, answer.read()
    except HTTPError as refusal:
        return refusal.code, refusal.headers, refusal.read()
    except (RemoteDisconnected, URLError):
        return 0, Message(), b""


def wait_for(address: str) -> None:
    deadline = time.monotonic() + 120
    while asked(address)[0] != 200:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{address} does not answer.")
        time.sleep(0.3)


def cookie_of(headers: Message) -> str:
    return (headers["Set-Cookie"] or "").split(";")[0]


def served(replica: str) -> float:
    """How many pages a replica has drawn, by its own count."""
    text = asked(f"http://{replica}:8501/metrics", {"Host": "localhost"})[2].decode()
    lines = [line for line in text.splitlines() if line.startswith("attention_page_runs_total")]
    return sum(float(line.split()[-1]) for line in lines)


async def page(cookie: str) -> Guest:
    guest = Guest(80, "", LINK)
    guest.cookie = cookie
    async with guest:
        return guest


def prove(what: str, holds: bool, told: object = "") -> None:
    print(f"{'yes' if holds else 'NO '}  {what} {told}", flush=True)
    if not holds:
        raise SystemExit(1)


def checks(replicas: Mapping[str, subprocess.Popen[bytes]]) -> None:
    index = asked(PROXY)[2].decode()
    script = index.split('src="./static/js/')[1].split('"')[0]
    for name in (f"/static/js/{script}", "/app/static/plotly.min.js"):
        plain = asked(PROXY + name)[2]
        _, headers, packed = asked(PROXY + name, {"Accept-Encoding": "gzip"})
        smaller = headers["Content-Encoding"] == "gzip" and len(packed) < len(plain) / 2
        prove("compressed", smaller, f"{name}: {len(plain):,} to {len(packed):,} bytes")
    prove("its rules reach the browser", "default-src 'none'" in str(asked(PROXY)[1]))
    prove("a foreign Host gets nothing", asked(PROXY, {"Host": "evil.example"})[0] == 0)
    prove("the metrics are for the owner", asked(f"{PROXY}/metrics")[0] == 404)
    cookies = {cookie_of(asked(PROXY)[1]) for _ in range(20)}
    prove("new visitors are spread over both replicas", len(cookies) == len(REPLICAS))
    drawn: dict[str, list[bytes]] = {}
    for cookie in cookies:
        before = {replica: served(replica) for replica in REPLICAS}
        guests = [asyncio.run(page(cookie)) for _ in range(3)]
        more = {replica: served(replica) - before[replica] for replica in REPLICAS}
        prove("a websocket, always to the same replica", sorted(more.values()) == [0, 3], more)
        prove("no trouble on the page", not any(guest.troubles for guest in guests))
        drawn[next(replica for replica in REPLICAS if more[replica])] = sorted(guests[-1].drawn)
    one, other = drawn.values()
    prove("a link gives the same page on both", one == other, f"{len(one)} elements")
    replicas[REPLICAS[0]].terminate()
    replicas[REPLICAS[0]].wait(timeout=30)
    Path("/etc/hosts").write_text(hosts_of(REPLICAS[1:]))  # as Docker's names forget it
    moved = [asyncio.run(page(cookie)) for cookie in cookies]
    same = all(sorted(guest.drawn) == one for guest in moved)
    prove("one replica ends, its visitors get the same page from the other", same)


def hosts_of(replicas: Sequence[str]) -> str:
    """The names of this check's own network."""
    return "127.0.0.1 localhost\n" + "".join(f"{address} app\n" for address in replicas)


def inside() -> None:
    with ExitStack() as stack:
        module = [sys.executable, "-m", "viz.server"]
        replicas = {
            address: stack.enter_context(running(module, STREAMLIT_SERVER_ADDRESS=address))
            for address in REPLICAS
        }
        for address in REPLICAS:
            wait_for(f"http://{address}:8501/readyz")
        caddy = ["caddy", "run", "--adapter", "caddyfile", "--config", "deploy/Caddyfile"]
        stack.enter_context(running(caddy))
        wait_for(f"{PROXY}/readyz")
        checks(replicas)


def main() -> None:
    if sys.argv[1:] == ["inside"]:
        inside()
        return
    with tempfile.NamedTemporaryFile("w", suffix=".hosts") as hosts:
        hosts.write(hosts_of(REPLICAS))
        hosts.flush()
        line = ["bwrap", "--bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-net"]
        line += ["--unshare-pid", "--die-with-parent", "--bind", hosts.name, "/etc/hosts"]
        command = [sys.executable, "-m", __spec__.name, "inside"]
        sys.exit(subprocess.run([*line, *command], cwd=REPOSITORY, check=False).returncode)


if __name__ == "__main__":
    main()
