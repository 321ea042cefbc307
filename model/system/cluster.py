"""Ray: the cluster that spreads work over machines. Only here one is started or joined.

A cluster runs any code for whoever reaches it. So one that is started here listens on 127.0.0.1 alone, asks
for a token, has no dashboard, and ends with its user; and one that runs elsewhere is joined with a token,
unless its owner says `RAY_AUTH_MODE=disabled`.
"""

import logging
import os
import secrets
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path

from model.system.addresses import is_loopback

HERE = "local"  # in place of an address
SECONDS_FOR_AN_ANSWER = 20.0
SECONDS_FOR_HEAD = 10.0  # for the head of the cluster to answer
ALIVE = 0  # in what it says of a machine
DEFAULTS = {"RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0"}
# Without it, Ray takes another address of this machine for 127.0.0.1.
ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
# Visitors wait for what runs there: Ray would let all else on the machine go first (a niceness of 15).
SERVING = {"RAY_gcs_rpc_server_reconnect_timeout_s": "86400", "RAY_worker_niceness": "0"}
TOKEN = Path(".ray") / "auth_token"  # in the home folder: where Ray looks unless it is told
TOLD_TOKENS = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")


def prepare(address: str, *, serving: bool = False) -> None:
    """Says what Ray reads when it is imported: before that. serving: visitors wait for this process, which
    goes on where the head of the cluster is gone; Ray would end it after a minute. Raises ValueError where
    Ray is missing, or nobody answers at the address."""
    if find_spec("ray") is None:
        raise ValueError(
            "Work on a cluster needs Ray, which is not installed. Install it: "
            "pip install -r requirements-cluster.txt, or the package with its extra “cluster”."
        )
    host, _, port = address.rpartition(":")
    if port.isdigit():
        _check_answers(host, int(port))
    loopback = address == HERE or is_loopback(host)
    chosen = DEFAULTS | (ON_LOOPBACK if loopback else {}) | (SERVING if serving else {})
    for name, value in chosen.items():
        os.environ.setdefault(name, value)


@contextmanager
def joined(address: str, *, cpus: int, serving: bool = False) -> Iterator[None]:
    """Inside, `ray` is connected: to a cluster of so many processors that is started here (HERE), to that of
    an address, or to the one that this machine is part of ("auto"). Where the process is connected already,
    it stays so. Raises ValueError with a sentence where that fails."""
    prepare(address, serving=serving)
    import ray

    if ray.is_initialized():
        yield
        return
    with _started(cpus) if address == HERE else nullcontext(address) as found:
        try:
            ray.init(found, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, ValueError, ray.exceptions.AuthenticationError) as error:
            raise ValueError(
                f"The cluster {address} cannot be joined: {str(error).rstrip('. ')}."
            ) from error
        try:
            yield
        finally:
            ray.shutdown()


def belongs() -> bool | None:
    """Whether this process still is a part of the cluster that answers where it has joined one; another one
    may answer there now. None where nobody answers. It asks through a client of its own, for Ray's would
    end the process where another one answers."""
    import ray
    from ray._raylet import GcsClient  # type: ignore[attr-defined]

    if not ray.is_initialized():
        return False
    here, alive = ray.get_runtime_context(), list[bool]()

    def look() -> None:
        with suppress(Exception):  # of a cluster whose head is gone
            head = GcsClient(address=here.gcs_address)
            nodes = head.get_all_node_info(timeout=SECONDS_FOR_HEAD).items()
            alive.append(
                (here.get_node_id(), ALIVE) in [(one.hex(), of.state) for one, of in nodes]
            )

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    looking.join(SECONDS_FOR_HEAD)
    return alive[0] if alive else None


def _check_answers(host: str, port: int) -> None:
    """Raises ValueError where nobody answers: Ray would try for many minutes."""
    try:
        socket.create_connection((host.strip("[]"), port), SECONDS_FOR_AN_ANSWER).close()
    except OSError as error:
        raise ValueError(
            f"No cluster answers at {host}:{port} ({error.strerror or error})."
        ) from error


@contextmanager
def _started(cpus: int) -> Iterator[str]:
    """The address of a cluster that ends with the block, or with this process."""
    from model.system.cluster_machine import Machine  # imports Ray

    _make_token()
    folder = tempfile.mkdtemp(prefix="ray-")  # nobody else opens it: its sockets and logs
    machine = None
    try:
        machine = Machine.start(folder, cpus)
        yield machine.gcs_address
    finally:
        if machine is not None:
            machine.kill_all_processes(check_alive=False, allow_graceful=True)
        shutil.rmtree(folder, ignore_errors=True)  # a process that is ending may still write


def _make_token() -> None:
    """A token that only this user reads, where there is none. Ray's own could be read by everybody."""
    if any(os.environ.get(name) for name in TOLD_TOKENS):
        return
    file = Path.home() / TOKEN
    file.parent.mkdir(mode=0o700, exist_ok=True)
    try:
        descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "w") as opened:
        opened.write(secrets.token_hex(32))
